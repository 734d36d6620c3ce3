//! Cache lines that several threads change at about the same time (a method of longpole's own).
//!
//! An atomic instruction needs its line for its CPU alone, and waits until another CPU has passed it on (Intel SDM, volume 3,
//! section 10.1). A clock finds such a thread behind that instruction ([`crate::event::NoteKind::Changed`]). But so it does
//! for a line that one thread alone changes. So two threads must be found at one line within [`TOGETHER_NS`]. For plain loads
//! and stores, there are more conditions ([`super::line_sharing`]).
//!
//! A thread that waits for a spin lock is at its line, too; such stacks count as waiting ([`super::spins`]), not here.

use super::line_sharing::{self, Sharing, while_others_run};
use crate::event::Access;
use crate::program::naming::lock_names::Addresses;
use crate::program::recorded::SharedLine;
use crate::program::sampled::sampled_code::SampledCode;
use crate::program::{LineFact, LineThread, Program};
use crate::timeline::{Thread, Timeline};
use probe_abi::SampleReason;
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::{BTreeMap, BTreeSet};

/// Bytes of a cache line on x86-64.
const LINE: u64 = 64;
/// Two threads that samples find at a line within this time are assumed to change it at once, ns. Samples are 2 ms
/// apart.
const TOGETHER_NS: u64 = 50_000_000;
/// Least number of samples that count.
const FEWEST: usize = 10;
/// Largest number of lines in the list.
const MOST: usize = 16;

/// A sample at a line.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seen {
    pub time_ns: u64,
    /// Index of the thread among those that have lived in the recording.
    pub thread: usize,
    pub stack: u32,
    pub address: u64,
    pub access: Access,
}

/// The shared lines of a recording, in descending order of samples.
pub(in crate::program) fn of(
    timeline: &Timeline,
    sampled: &SampledCode,
    program: &Program,
) -> Vec<(SharedLine, LineFact)> {
    if timeline.stacks.iter().all(|stack| stack.changed.is_none()) {
        return Vec::new();
    }
    let lived: Vec<&Thread> = timeline.threads.iter().filter(|thread| thread.has_lived()).collect();
    let by_line = seen_by_line(timeline, &lived, sampled);
    let mut atomic: FxHashMap<usize, u64> = FxHashMap::default();
    for seen in by_line.values().flatten().filter(|seen| seen.access.is_atomic()) {
        *atomic.entry(seen.thread).or_insert(0) += 1;
    }
    let addresses = Addresses::new(&timeline.addresses);
    let mut lines: Vec<(SharedLine, LineFact)> = by_line
        .into_iter()
        .filter_map(|((pid, _), seen)| {
            let (seen, sharing) = shared(seen, &lived, &atomic)?;
            Some(line(pid, (&seen, sharing), &addresses, program))
        })
        .collect();
    let at_line = |(_, fact): &(_, LineFact)| fact.threads.iter().map(|thread| thread.at_line).sum::<u64>();
    lines.sort_by_key(|line| std::cmp::Reverse(at_line(line)));
    lines.truncate(MOST);
    lines
}

fn seen_by_line(
    timeline: &Timeline,
    lived: &[&Thread],
    sampled: &SampledCode,
) -> BTreeMap<(u32, u64), Vec<Seen>> {
    let waiting = sampled.waiting(timeline);
    let mut lines: BTreeMap<(u32, u64), Vec<Seen>> = BTreeMap::new();
    for (place, thread) in lived.iter().enumerate() {
        for sample in thread.samples.iter().filter(|sample| sample.reason == SampleReason::Tick) {
            let Some(stack) = timeline.stacks.get(sample.stack as usize) else { continue };
            let Some((address, access)) =
                stack.changed.filter(|_| waiting.get(sample.stack as usize) != Some(&true))
            else {
                continue;
            };
            let (time_ns, stack_number) = (sample.time.0, sample.stack);
            let seen = Seen { time_ns, thread: place, stack: stack_number, address, access };
            lines.entry((stack.pid, address / LINE)).or_default().push(seen);
        }
    }
    lines
}

/// The samples of threads that wait for a line, and how the threads share it; `None`: they do not wait for it.
fn shared(
    seen: Vec<Seen>,
    lived: &[&Thread],
    atomic: &FxHashMap<usize, u64>,
) -> Option<(Vec<Seen>, Sharing)> {
    let changes = together(seen.iter().filter(|seen| seen.access.is_atomic()).copied().collect());
    if changes.len() >= FEWEST {
        let is_false = is_false(&changes);
        return Some((changes, Sharing { is_false, readers: 0 }));
    }
    if seen.iter().all(|seen| seen.access.is_atomic()) {
        return None;
    }
    let seen = together(while_others_run(seen, lived));
    let sharing = line_sharing::of(&seen, atomic).filter(|_| seen.len() >= FEWEST)?;
    Some((seen, sharing))
}

/// Whether each word of the line belongs to one thread (false sharing).
fn is_false(seen: &[Seen]) -> bool {
    let mut words: FxHashMap<u64, FxHashSet<usize>> = FxHashMap::default();
    for seen in seen {
        words.entry(seen.address).or_default().insert(seen.thread);
    }
    words.len() > 1 && words.values().all(|by| by.len() == 1)
}

/// Samples within `TOGETHER_NS` of a sample of another thread.
fn together(mut seen: Vec<Seen>) -> Vec<Seen> {
    seen.sort_by_key(|seen| seen.time_ns);
    // Marks samples with another thread's sample shortly before, in each direction.
    let mut is_near = vec![false; seen.len()];
    let mut mark = |order: &mut dyn Iterator<Item = usize>| {
        let mut last: FxHashMap<usize, u64> = FxHashMap::default();
        for index in order {
            let Some(here) = seen.get(index) else { continue };
            let near = last
                .iter()
                .any(|(thread, time)| *thread != here.thread && time.abs_diff(here.time_ns) <= TOGETHER_NS);
            if let Some(is_near) = is_near.get_mut(index) {
                *is_near |= near;
            }
            last.insert(here.thread, here.time_ns);
            last.retain(|_, time| time.abs_diff(here.time_ns) <= TOGETHER_NS);
        }
    };
    mark(&mut (0..seen.len()));
    mark(&mut (0..seen.len()).rev());
    seen.into_iter().zip(is_near).filter_map(|(seen, near)| near.then_some(seen)).collect()
}

fn line(
    pid: u32,
    (seen, sharing): (&[Seen], Sharing),
    addresses: &Addresses<'_>,
    program: &Program,
) -> (SharedLine, LineFact) {
    let mut threads: BTreeMap<usize, u64> = BTreeMap::new();
    let mut words: BTreeSet<u64> = BTreeSet::new();
    let mut functions: BTreeMap<u32, u64> = BTreeMap::new();
    for seen in seen {
        *threads.entry(seen.thread).or_insert(0) += 1;
        words.insert(seen.address);
        if let Some(function) = program.users_function(seen.stack) {
            *functions.entry(function.0).or_insert(0) += 1;
        }
    }
    let time_ns = seen.first().map_or(0, |seen| seen.time_ns);
    let name = |address: &u64| addresses.at(pid, *address, time_ns).and_then(|fact| fact.name.as_deref());
    let mut names: Vec<&str> = words.iter().filter_map(name).filter(|name| !name.is_empty()).collect();
    names.dedup();
    let function = functions.into_iter().max_by_key(|(_, count)| *count);
    let function = function.and_then(|(function, _)| program.functions.get(function as usize));
    let samples = |thread: usize| program.samples.of_thread(thread).len() as u64;
    let of_thread = |(thread, at_line): (usize, u64)| LineThread {
        thread: u32::try_from(thread).unwrap_or(u32::MAX),
        at_line,
        samples: samples(thread),
    };
    let line = SharedLine {
        variables: names.into_iter().map(str::to_owned).collect(),
        address: format!("{:#x}", seen.iter().map(|seen| seen.address).min().unwrap_or(0)),
        function: function.map(|function| function.name.clone()),
        threads: threads.len() as u64,
        is_false: sharing.is_false,
        readers: sharing.readers,
    };
    let threads = threads.into_iter().map(of_thread).collect();
    (line, LineFact { threads, samples: program.samples.count() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(times: &[(u64, usize)]) -> Vec<(u64, usize)> {
        let all = times.iter().map(|(time_ms, thread)| Seen {
            time_ns: time_ms * 1_000_000,
            thread: *thread,
            stack: 0,
            address: 0x40,
            access: Access::Atomic,
        });
        together(all.collect()).iter().map(|seen| (seen.time_ns / 1_000_000, seen.thread)).collect()
    }

    #[test]
    fn threads_share_a_line_only_where_they_use_it_at_the_same_time() {
        assert_eq!(seen(&[(0, 1), (10, 1), (20, 1)]), []);
        assert_eq!(seen(&[(0, 1), (60, 2)]), []);
        assert_eq!(seen(&[(0, 1), (5, 1), (40, 2), (200, 2)]), [(0, 1), (5, 1), (40, 2)]);
        assert_eq!(seen(&[(40, 2), (0, 1)]), [(0, 1), (40, 2)], "in any order");
    }
}
