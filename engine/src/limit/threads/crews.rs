//! Crews: threads that do the same, in one process or as the only busy threads of several processes, such as a pool's.

use super::holders::{self, Sums};
use super::thread_group::Group;
use super::thread_name::{bare, letters};
use crate::attribution::Owners;
use crate::program::Program;
use rustc_hash::FxHashMap;

/// A thread computes most of what its process does if others compute at most this fraction (one part in `LITTLE`) of it.
const LITTLE: u64 = 10;
/// A process that computes less than this fraction of the busiest one does something else.
const OTHERS: u64 = 4;

/// Groups of several threads, and of the busiest threads of several processes with one name.
pub(in crate::limit) fn crews(program: &Program, owners: &Owners, groups: &[Group]) -> Vec<Vec<usize>> {
    let several = groups.iter().map(|group| group.threads.clone()).filter(|threads| threads.len() > 1);
    several.chain(of_processes(program, owners)).collect()
}

fn of_processes(program: &Program, owners: &Owners) -> Vec<Vec<usize>> {
    if program.threads.windows(2).all(|pair| pair[0].process == pair[1].process) {
        return Vec::new();
    }
    // For each process: what all threads and the busiest one compute, and the busiest one's number.
    let mut processes: FxHashMap<Option<&str>, (u64, u64, usize)> = FxHashMap::default();
    for (number, thread) in program.threads.iter().enumerate() {
        let mut sums = Sums::default();
        holders::of_thread(program, owners, number, None, &mut sums);
        let (all, most, busiest) = processes.entry(thread.process.as_deref()).or_default();
        *all = all.saturating_add(sums.all());
        if sums.all() > *most {
            (*most, *busiest) = (sums.all(), number);
        }
    }
    let mut by_name: FxHashMap<String, Vec<(usize, u64)>> = FxHashMap::default();
    for (all, most, number) in processes.into_values().filter(|(_, most, _)| *most > 0) {
        let Some(thread) = program.threads.get(number).filter(|_| all - most <= all / LITTLE) else {
            continue;
        };
        by_name.entry(letters(bare(&thread.name))).or_default().push((number, most));
    }
    let crew = |threads: Vec<(usize, u64)>| {
        let most = threads.iter().map(|(_, computed)| *computed).max().unwrap_or(0);
        let busy = threads.into_iter().filter(|(_, computed)| *computed >= most / OTHERS);
        let mut crew: Vec<usize> = busy.map(|(thread, _)| thread).collect();
        crew.sort_unstable();
        crew
    };
    let mut crews: Vec<Vec<usize>> = by_name.into_values().map(crew).collect();
    crews.retain(|crew| crew.len() > 1);
    crews.sort_unstable();
    crews
}
