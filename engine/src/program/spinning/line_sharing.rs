//! Decides whether threads wait for a cache line that they use by plain loads and stores. (This method is longpole's
//! own.)
//!
//! A clock tick finds a thread behind a load that waits, but also behind a load that does not wait, and behind loads of
//! data received through a lock or a pipe. So a line counts only if
//!
//! 1. another of its threads has a CPU at that time: threads that take turns do not wait for lines;
//! 2. its changes are not rare: a table that hardly changes is only found where it is read;
//! 3. its threads are rarely found at atomic instructions elsewhere: those are locks, which protect shared data; and
//! 4. each changed word is one thread's own (false sharing), or several threads change one word all the time.

use super::shared_lines::Seen;
use crate::event::Access;
use crate::time::Timestamp;
use crate::timeline::{State, Thread};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;

/// Least number of samples of a word, or of a thread, that count.
const TELLS: u64 = 4;
/// Changes by a thread that cannot be a coincidence.
const CHANGES: u64 = 5;

/// How the threads of a line share it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sharing {
    /// False sharing: the threads use different words of the line.
    pub is_false: bool,
    /// Number of threads that only read the line.
    pub readers: u64,
}

/// Samples at which another thread found at the line had a CPU.
pub(super) fn while_others_run(seen: Vec<Seen>, threads: &[&Thread]) -> Vec<Seen> {
    let mut users: Vec<usize> = seen.iter().map(|seen| seen.thread).collect();
    users.sort_unstable();
    users.dedup();
    let does_run = |thread: usize, time_ns: u64| threads.get(thread).is_some_and(|of| runs_at(of, time_ns));
    let is_shared = |seen: &Seen| users.iter().any(|at| *at != seen.thread && does_run(*at, seen.time_ns));
    seen.into_iter().filter(is_shared).collect()
}

fn runs_at(thread: &Thread, time_ns: u64) -> bool {
    let time = Timestamp(time_ns);
    let interval = thread.intervals.partition_point(|interval| interval.start <= time).checked_sub(1);
    let interval = interval.and_then(|at| thread.intervals.get(at)).filter(|_| time < thread.end);
    interval.is_some_and(|interval| matches!(interval.state, State::Running { .. }))
}

/// How threads share a line; `None` if nothing shows that they wait for the line. `atomic`: samples at atomic
/// instructions, by thread, for all lines together.
pub(in crate::program) fn of(seen: &[Seen], atomic: &FxHashMap<usize, u64>) -> Option<Sharing> {
    let mut words: BTreeMap<u64, Word> = BTreeMap::new();
    for seen in seen {
        let of = words.entry(seen.address).or_default().by.entry(seen.thread).or_default();
        of.0 += 1;
        of.1 += u64::from(seen.access != Access::Read);
        of.2 += u64::from(seen.access == Access::Atomic);
    }
    words.retain(|_, word| word.count() >= TELLS);
    let count = |wanted: &dyn Fn(&Word) -> bool| -> u64 {
        words.values().filter(|word| wanted(word)).map(Word::count).sum()
    };
    let all = count(&|_| true);
    let mut changes: BTreeMap<usize, (u64, u64)> = BTreeMap::new();
    for (thread, of) in words.values().flat_map(|word| &word.by) {
        let (count, changed) = changes.entry(*thread).or_default();
        *count += of.0;
        *changed += of.1;
    }
    changes.retain(|_, (count, _)| *count >= TELLS);
    let changed: u64 = changes.values().map(|(_, changed)| changed).sum();
    let elsewhere = |thread: &usize| {
        let here: u64 = words.values().filter_map(|word| word.by.get(thread)).map(|of| of.2).sum();
        atomic.get(thread).copied().unwrap_or(0).saturating_sub(here)
    };
    let locks: u64 = changes.keys().map(elsewhere).sum();
    if changes.len() < 2 || changed < (all / 10).max(CHANGES) || locks > all / 4 {
        return None;
    }
    let readers = changes.values().filter(|(_, changed)| *changed < CHANGES).count() as u64;
    if 10 * count(&|word| word.is_own()) >= 9 * all {
        return Some(Sharing { is_false: true, readers });
    }
    (2 * count(&|word| word.is_contested()) >= all).then_some(Sharing { is_false: false, readers })
}

/// For each thread: its samples at the word, the changes among them, and the atomic changes among those.
#[derive(Debug, Default)]
struct Word {
    by: FxHashMap<usize, (u64, u64, u64)>,
}

impl Word {
    fn count(&self) -> u64 {
        self.by.values().map(|of| of.0).sum()
    }

    /// Whether no thread changes the word, or only one thread uses it.
    fn is_own(&self) -> bool {
        let most = self.by.values().map(|of| of.0).max().unwrap_or(0);
        self.by.values().all(|of| of.1 == 0) || 20 * most >= 19 * self.count()
    }

    /// Whether several threads change the word by plain stores.
    fn is_contested(&self) -> bool {
        self.by.values().filter(|of| of.1.saturating_sub(of.2) >= CHANGES).count() >= 2
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::timeline::Interval;

    /// Samples of a thread that accessed a word: `samples` of them.
    fn at(thread: usize, address: u64, access: Access, samples: usize) -> Vec<Seen> {
        vec![Seen { time_ns: 0, thread, stack: 0, address, access }; samples]
    }

    fn shared(seen: &[Vec<Seen>]) -> Option<(bool, u64)> {
        of(&seen.concat(), &FxHashMap::default()).map(|sharing| (sharing.is_false, sharing.readers))
    }

    use Access::{Atomic, Read, Write};

    #[test]
    fn words_of_different_threads_in_one_line_are_false_sharing() {
        assert_eq!(shared(&[at(1, 0x40, Write, 10), at(2, 0x48, Write, 10)]), Some((true, 0)));
        assert_eq!(shared(&[at(1, 0x40, Write, 10), at(2, 0x48, Read, 20)]), Some((true, 1)), "a flag");
        assert_eq!(
            shared(&[at(1, 0x40, Write, 10), at(2, 0x48, Read, 20), at(3, 0x48, Read, 20)]),
            Some((true, 2)),
            "a flag of several"
        );
        assert_eq!(shared(&[at(1, 0x40, Atomic, 10), at(2, 0x48, Read, 20)]), Some((true, 1)));
    }

    #[test]
    fn a_word_that_several_threads_change_is_true_sharing() {
        assert_eq!(shared(&[at(1, 0x40, Write, 10), at(2, 0x40, Write, 10)]), Some((false, 0)));
    }

    #[test]
    fn lines_that_hardly_change_or_pass_data_on_are_not_shared() {
        assert_eq!(shared(&[at(1, 0x40, Read, 50), at(2, 0x48, Read, 50)]), None, "a table");
        let rarely = [at(1, 0x40, Read, 90), at(2, 0x40, Read, 90), at(1, 0x48, Write, 6)];
        assert_eq!(shared(&rarely), None, "a table that is changed at times");
        let queue =
            [at(1, 0x40, Write, 10), at(2, 0x48, Write, 10), at(1, 0x50, Write, 9), at(2, 0x50, Read, 9)];
        assert_eq!(shared(&queue), None, "head, tail and count of a queue");
        assert_eq!(
            shared(&[at(1, 0x40, Write, 20), at(2, 0x40, Read, 20)]),
            None,
            "what one tells the other"
        );
        assert_eq!(shared(&[at(1, 0x40, Write, 20)]), None, "one thread");
        assert_eq!(shared(&[at(1, 0x40, Atomic, 9), at(2, 0x40, Atomic, 9)]), None, "a lock");
        let few: Vec<Vec<Seen>> = (0..8).map(|word| at(word % 2, 0x40 + 8 * word as u64, Write, 3)).collect();
        assert_eq!(shared(&few), None, "words that others may use as well");
    }

    #[test]
    fn threads_that_take_locks_meanwhile_pass_data_on() {
        let seen = [at(1, 0x40, Write, 20), at(2, 0x40, Write, 20)].concat();
        let atomic = |samples: u64| FxHashMap::from_iter([(1, samples), (3, 100)]);
        assert_eq!(of(&seen, &atomic(30)), None);
        assert!(of(&seen, &atomic(3)).is_some());
    }

    /// Threads under one interpreter lock, or on one CPU, use the same memory in turns, so they do not wait for its
    /// cache lines.
    #[test]
    fn a_use_of_a_line_counts_only_while_another_thread_runs() {
        let running = |start: u64| Interval {
            start: Timestamp(start),
            state: State::Running { cpu: Some(0) },
            first_step: 0,
        };
        let runnable = |start: u64| Interval { state: State::Runnable, ..running(start) };
        let thread =
            |intervals: Vec<Interval>| Thread { end: Timestamp(100), intervals, ..Thread::default() };
        let both = [thread(vec![running(0), runnable(50)]), thread(vec![runnable(0), running(40)])];
        let both: Vec<&Thread> = both.iter().collect();
        let seen = |time_ns: u64, thread: usize| Seen { time_ns, thread, ..at(0, 0x40, Write, 1)[0] };
        let seen = vec![seen(10, 0), seen(45, 0), seen(45, 1), seen(60, 1), seen(200, 1)];
        let left = while_others_run(seen, &both);
        assert_eq!(
            left.iter().map(|seen| (seen.time_ns, seen.thread)).collect::<Vec<_>>(),
            [(45, 0), (45, 1)]
        );
    }
}
