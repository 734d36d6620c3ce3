//! On whose behalf threads work, as far as the recording shows it (1989, section 3.3: a thread has its creator's
//! profile stack). A thread may wait for work: for a condition, a semaphore, a completion, a descriptor, or a futex by
//! which work is passed on. From its wake-up until its next wait for work, the thread works for its waker, the
//! submitter. So a pool works for its submitter, and an OpenMP region for its function. Of its creator's profile stack,
//! a thread keeps only functions that are on the submitter's stack, too. A wake-up in the other direction, to the
//! submitter or to the creator, is only an answer.
//!
//! Open functions of the waking thread are those of probes and of the sample at this wake-up. Without such a sample,
//! they are the frames that all samples of the thread's wake-ups have in common: other samples do not show the function
//! that wakes. For a creator without such a sample, they are the outermost frames that its samples before and after
//! have in common. Only functions of the program's author are inherited, and none that threads have on their own stacks
//! anyway.

use crate::attribution::{Keys, NO_KEY};
use crate::program::{Function, Program};
use crate::time::Timestamp;
use crate::timeline::{Birth, NO_STACK, StackSample, Thread, Timeline, WaitReason};
use probe_abi::SampleReason;
use rustc_hash::{FxHashMap, FxHashSet};

/// Largest number of a creator's samples that are compared.
const COMPARED: usize = 64;
/// Fewest samples with common frames that count.
const FEWEST: usize = 2;
/// Fewest wake-ups by a futex. With fewer, it may be a lock that only one of the threads happened to wait for, and samples
/// may agree by chance.
const OFTEN: usize = 8;
/// Largest number of frames that are inherited.
const DEEPEST: usize = 64;

/// Parts of names of functions that wake threads to work: the C library's, Rust's, C++'s and OpenMP's.
const SUBMITS: [&str; 10] = [
    "pthread_cond_",
    "cnd_signal",
    "cnd_broadcast",
    "sem_post",
    "ondvar",
    "condition_variable",
    "unpark",
    "gomp_team_start",
    "GOMP_parallel",
    "__kmp",
];

/// The rows of stacks of a recording.
pub(super) struct Stacks<'a> {
    pub(super) program: &'a Program,
    pub(super) keys: &'a Keys,
}

impl Stacks<'_> {
    /// The author's functions on a stack, the outermost first.
    fn rows(&self, stack: u32) -> Vec<u32> {
        let places = self.program.samples.stack(stack).filter(|(_, place)| {
            let function = self.program.functions.get(place.function.0 as usize);
            function.is_some_and(Function::is_authors)
        });
        let mut rows: Vec<u32> = places.map(|(place, _)| self.keys.of_place(place)).collect();
        rows.retain(|row| *row != NO_KEY);
        rows.reverse();
        rows
    }

    /// Whether a thread that wakes another at this instant was sampled in a function that passes work on.
    pub(super) fn submits(&self, thread: &Thread, time: Timestamp) -> bool {
        let seen = thread.samples_at(time, SampleReason::Wake).map(|seen| seen.stack).next();
        let functions = seen.into_iter().flat_map(|stack| self.program.samples.stack(stack));
        let functions =
            functions.filter_map(|(_, place)| self.program.functions.get(place.function.0 as usize));
        let mut names = functions.map(|function| function.name.as_str());
        names.any(|name| SUBMITS.iter().any(|part| name.contains(part)))
    }

    /// Rows on the stack of a thread that wakes another at this instant, the outermost first; `None` without a sample.
    pub(super) fn waking_at(&self, thread: &Thread, time: Timestamp) -> Option<Vec<u32>> {
        let seen = thread.samples_at(time, SampleReason::Wake).find(is_whole)?;
        Some(self.first_rows(seen.stack))
    }

    /// Common outermost rows of all stacks of a thread's wake-ups; empty if there are too few.
    pub(super) fn always_waking(&self, thread: &Thread) -> Vec<u32> {
        let seen = thread.samples.iter().filter(|seen| seen.reason == SampleReason::Wake && is_whole(seen));
        let stacks: FxHashSet<u32> = seen.map(|seen| seen.stack).collect();
        let number = thread.samples.iter().filter(|seen| seen.reason == SampleReason::Wake).count();
        if number < OFTEN { Vec::new() } else { self.common(stacks.into_iter()) }
    }

    /// Rows open on the stack of a thread that creates another at this instant, the outermost first.
    pub(super) fn creating_at(&self, thread: &Thread, time: Timestamp) -> Vec<u32> {
        let later = thread.samples.partition_point(|seen| seen.time < time);
        let (before, after) = thread.samples.split_at(later);
        let before = before.iter().rev().find(is_whole);
        let most = if before.is_some() { 1 } else { COMPARED };
        let seen = before.into_iter().chain(after.iter().filter(is_whole).take(most));
        let stacks: Vec<u32> = seen.map(|seen| seen.stack).collect();
        // One sample alone does not show which functions are open at another time.
        if stacks.len() < FEWEST { Vec::new() } else { self.common(stacks.into_iter()) }
    }

    /// The common outermost frames of stacks.
    fn common(&self, mut stacks: impl Iterator<Item = u32>) -> Vec<u32> {
        let first = stacks.next().map_or(Vec::new(), |stack| self.first_rows(stack));
        stacks.fold(first, |common, stack| {
            let other = self.first_rows(stack);
            let same = common.iter().zip(&other).take_while(|(a, b)| a == b).count();
            common.into_iter().take(same).collect()
        })
    }

    fn first_rows(&self, stack: u32) -> Vec<u32> {
        let mut rows = self.rows(stack);
        rows.truncate(DEEPEST);
        rows
    }
}

fn is_whole(seen: &&StackSample) -> bool {
    seen.stack != NO_STACK && !seen.truncated
}

/// Waiters and wakers of a futex word, and the number of wake-ups.
#[derive(Debug, Default)]
struct Used {
    waiters: FxHashSet<u32>,
    wakers: FxHashSet<u32>,
    times: usize,
}

/// Futex words, by process, that pass work on: some threads only wait for them and others only wake those. Threads that use a
/// lock do both, sooner or later.
pub(super) fn handed_over(timeline: &Timeline) -> FxHashSet<(u32, u64)> {
    let mut words: FxHashMap<(u32, u64), Used> = FxHashMap::default();
    for wakeup in &timeline.wakeups {
        if let Some((thread, wait)) = timeline.ended_by(wakeup)
            && let WaitReason::Futex(futex) = wait.reason
        {
            let used = words.entry((thread.pid, futex.word)).or_default();
            used.waiters.insert(wakeup.wakee);
            used.wakers.insert(wakeup.waker);
            used.times += 1;
        }
    }
    let is_one_way = |used: &Used| used.times >= OFTEN && used.waiters.is_disjoint(&used.wakers);
    words.into_iter().filter(|(_, used)| is_one_way(used)).map(|(word, _)| word).collect()
}

/// All rows on sampled stacks of threads other than the first one: such a thread has these rows without inheriting
/// them.
pub(super) fn own_rows(timeline: &Timeline, program: &Program, keys: &Keys) -> FxHashSet<u32> {
    let samples = timeline.threads.iter().skip(1).flat_map(|thread| &thread.samples);
    let stacks: FxHashSet<u32> = samples.map(|seen| seen.stack).filter(|stack| *stack != NO_STACK).collect();
    let places = stacks.into_iter().flat_map(|stack| program.samples.stack(stack));
    places.map(|(place, _)| keys.of_place(place)).collect()
}

/// Whether `ancestor` created the thread `of`, directly or through other threads.
pub(super) fn is_ancestor(timeline: &Timeline, ancestor: usize, of: usize) -> bool {
    let mut at = of;
    // A hostile recording may have cycles.
    for _ in 0..DEEPEST {
        match timeline.threads.get(at).map(|thread| thread.birth) {
            Some(Birth::By(parent)) if parent as usize == ancestor => return true,
            Some(Birth::By(parent)) => at = parent as usize,
            _ => return false,
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::FutexFact;
    use crate::timeline::{Wait, Wake, Wakeup};

    /// A timeline with wake-ups of one thread by another at one futex word: waker, wakee and number of wake-ups.
    fn used(wakes: &[(u32, u32, usize)]) -> Timeline {
        let reason = WaitReason::Futex(FutexFact { word: 0x40, ..FutexFact::default() });
        let wait =
            Wait { reason, wake: Wake::CutByUnknown, cut_at_start: false, moved_to: None, from_now: false };
        let thread = || Thread { pid: 7, waits: vec![wait], ..Thread::default() };
        let wakeup = |waker, wakee| Wakeup { time: Timestamp(0), waker, wakee, ended: Some(0) };
        let all = wakes.iter().flat_map(|&(waker, wakee, times)| vec![wakeup(waker, wakee); times]);
        Timeline {
            threads: vec![thread(), thread(), thread()],
            wakeups: all.collect(),
            ..Timeline::default()
        }
    }

    #[test]
    fn a_futex_passes_work_on_if_no_thread_both_waits_for_it_and_wakes_it() {
        let is_handed_over = |wakes: &[(u32, u32, usize)]| handed_over(&used(wakes)).contains(&(7, 0x40));
        assert!(is_handed_over(&[(0, 1, 5), (0, 2, 3)]), "a queue of two threads");
        assert!(!is_handed_over(&[(0, 1, 5), (0, 2, 3), (1, 0, 1)]), "a lock");
        assert!(!is_handed_over(&[(0, 1, 5), (0, 2, 2)]), "too seldom to tell");
        assert!(!handed_over(&used(&[(0, 1, 8)])).contains(&(8, 0x40)), "another process's");
    }
}
