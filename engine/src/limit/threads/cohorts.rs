//! Cohorts: threads that do the same, as THREADS shows and `what-if` names them.

use super::thread_name::{bare, letters};
use super::thread_samples::ThreadSamples;
use super::uses::{States, ThreadUse};
use crate::experiment::created;
use crate::limit::LimitKind;
use crate::limit::search::Search;
use crate::program::{FunctionRef, Operation, Thread};
use crate::time::Ticks;
use rustc_hash::{FxHashMap, FxHashSet};

impl Search {
    /// What threads do, by cohort (threads of one kind), the busiest cohort first. A thread that a limit names is a
    /// cohort by itself.
    pub(in crate::limit) fn thread_uses(
        &self,
        states: &States,
        length: Ticks,
        limits: &[&LimitKind],
    ) -> Vec<ThreadUse> {
        let is_named = |name: &str| {
            let named = |kind: &&&LimitKind| matches!(kind, LimitKind::Serial { thread, .. } | LimitKind::BusyThread { thread, .. } | LimitKind::Stage { thread, .. } if thread == name);
            limits.iter().any(|kind| named(&kind))
        };
        let cohorts = self.cohorts(is_named);
        let means = cohorts.iter().map(|threads| states.mean(self.program(), threads, length));
        let mut threads: Vec<ThreadUse> = means.collect();
        let all = |of: &ThreadUse| of.running * of.names.len() as f64;
        threads.sort_by(|a, b| all(b).total_cmp(&all(a)));
        threads
    }

    /// The threads of the cohort that THREADS shows under this name: `xz` for `xz x4`, or `teller-*`. If several
    /// cohorts have the name, the largest one.
    pub fn cohort(&self, name: &str) -> Option<Vec<usize>> {
        let wanted = letters(name.trim_end_matches('*'));
        let is_called = |thread: &Thread| letters(bare(&thread.name)) == wanted;
        let first = |threads: &Vec<usize>| self.program().threads.get(*threads.first()?);
        let cohorts = self.cohorts(|_| false).into_iter();
        cohorts.filter(|threads| first(threads).is_some_and(is_called)).max_by_key(Vec::len)
    }

    /// Names of the cohorts, the largest cohort first.
    pub fn cohort_names(&self) -> Vec<String> {
        let mut cohorts = self.cohorts(|_| false);
        cohorts.sort_by_key(|threads| std::cmp::Reverse(threads.len()));
        let first = |threads: &Vec<usize>| self.program().threads.get(*threads.first()?);
        let mut names: Vec<String> = Vec::new();
        for name in cohorts.iter().filter_map(first).map(|thread| bare(&thread.name)) {
            if !names.iter().any(|known| known == name) {
                names.push(name.to_owned());
            }
        }
        names
    }

    /// Groups threads that were started with one function and whose names differ only by digits. The first thread of a
    /// process is a cohort by itself, and so is a thread for whose name `is_alone` holds. Threads in the background
    /// come after all others.
    fn cohorts(&self, is_alone: impl Fn(&str) -> bool) -> Vec<Vec<usize>> {
        let program = self.program();
        let background = (0..).zip(&program.threads).filter(|(_, thread)| thread.background.is_some());
        let background: Vec<usize> = background.map(|(number, _)| number).collect();
        let operations = program.threads.iter().flat_map(|thread| &thread.operations);
        let created: FxHashSet<usize> = operations.filter_map(created).collect();
        let mut cohorts: Vec<Vec<usize>> = Vec::new();
        for group in self.groups.iter().map(|group| &group.threads).chain([&background]) {
            let members: FxHashSet<usize> = group.iter().copied().collect();
            // A thread with too few samples is assumed to have been started like other threads of its name.
            let entry = |number: &usize| self.samples.get(*number).and_then(ThreadSamples::told_entry);
            let (told, untold): (Vec<usize>, Vec<usize>) =
                group.iter().partition(|number| entry(number).is_some());
            let mut by_name: FxHashMap<(Option<&str>, String), usize> = FxHashMap::default();
            let mut places: FxHashMap<(Option<FunctionRef>, Option<&str>, String), usize> =
                FxHashMap::default();
            for number in told.into_iter().chain(untold) {
                let Some(thread) = program.threads.get(number) else { continue };
                if is_alone(&thread.name) || is_first(thread, created.contains(&number), &members) {
                    cohorts.push(vec![number]);
                    continue;
                }
                let name = letters(bare(&thread.name));
                let entry = entry(&number);
                let process = thread.process.as_deref();
                let of_name = by_name.entry((process, name.clone())).or_insert(cohorts.len());
                let known = if entry.is_none() { *of_name } else { cohorts.len() };
                let place = *places.entry((entry, process, name)).or_insert(known);
                match cohorts.get_mut(place) {
                    Some(threads) => threads.push(number),
                    None => cohorts.push(vec![number]),
                }
            }
        }
        cohorts
    }
}

/// Whether the thread is the first of its process. If processes are unknown: whether no thread started it and it
/// started others of the group.
fn is_first(thread: &Thread, is_created: bool, group: &FxHashSet<usize>) -> bool {
    let number = |name: &str| name.rsplit_once('/').map(|(_, number)| number.to_owned());
    if let Some(of_process) = thread.process.as_deref().and_then(number) {
        return number(&thread.name) == Some(of_process);
    }
    let creates = |operation: &Operation| matches!(operation, Operation::Create(other) if group.contains(&(other.0 as usize)));
    !is_created && thread.operations.iter().any(creates)
}
