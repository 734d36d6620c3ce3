//! Finds futex words that are mutexes, with their waits and wake-ups. A word is a mutex if a sample found a thread
//! waiting for it in a function with a name of a mutex's slow path: C libraries, Rust's standard library and other
//! libraries use such names.

use super::super::model::{State, Thread, Timeline, Wait, Wake};
use super::lock_samples::{CallId, Calls};
use crate::event::ReadWrite;
use crate::timeline::thread::wait_reason::WaitReason;
use probe_abi::SampleReason;
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::{BTreeMap, BTreeSet};

/// Size of the largest lock of a C library that a word may be part of, bytes.
const LOCK_BYTES: u64 = 56;

/// A mutex, or one side of a read-write lock.
#[derive(Clone, Debug, Default)]
pub(super) struct Word {
    pub(super) pid: u32,
    /// Its lowest word.
    pub(super) address: u64,
    /// All words of the lock; a mutex has one.
    pub(super) addresses: BTreeSet<u64>,
    /// The side of a read-write lock; `None` for a mutex.
    pub(super) side: Option<ReadWrite>,
    /// Time at which the first wait began, and the index of its thread.
    pub(super) first: (u64, u32),
    /// Calls in which threads waited for the lock, and behind which code is known to run under the lock.
    pub(super) calls: BTreeSet<CallId>,
    /// Waits and wake-ups of each thread.
    pub(super) threads: BTreeMap<u32, Marks>,
    /// Number of waits.
    pub(super) waits: u64,
}

/// A thread's waits and wake-ups at a word, each in order of time.
#[derive(Clone, Debug, Default)]
pub(super) struct Marks {
    /// Waits: begin, and when the thread ran again.
    pub(super) waits: Vec<(u64, u64)>,
    /// Releases that woke waiters: time of the first and of the last wake-up.
    pub(super) wakes: Vec<(u64, u64)>,
}

/// The mutexes without recorded operations.
pub(super) fn find(timeline: &Timeline, calls: &Calls) -> Vec<Word> {
    let mut words: FxHashMap<(u32, u64), Word> = FxHashMap::default();
    let mut mutexes: FxHashSet<(u32, u64)> = FxHashSet::default();
    for slept in sleeps(timeline) {
        let Slept { index, key, start_ns, ran_ns, stack, .. } = slept;
        let (pid, address) = key;
        let known = words.entry(key).or_insert_with(|| Word {
            pid,
            address,
            addresses: BTreeSet::from([address]),
            first: (start_ns, index),
            ..Word::default()
        });
        known.first = known.first.min((start_ns, index));
        known.waits += 1;
        known.threads.entry(index).or_default().waits.push((start_ns, ran_ns));
        if let Some(stack) = stack {
            known.calls.extend(calls.takes(stack));
            if calls.is_mutex(stack) {
                mutexes.insert(key);
            }
        }
    }
    words.retain(|key, _| mutexes.contains(key));
    wakes(timeline, &mut words);
    words.into_values().collect()
}

/// A wait for a futex word.
pub(super) struct Slept<'a> {
    pub(super) index: u32,
    pub(super) wait: &'a Wait,
    /// Index of the wait in the thread's waits.
    pub(super) number: u32,
    /// Process and address of the word.
    pub(super) key: (u32, u64),
    pub(super) start_ns: u64,
    /// Time at which the thread was on a CPU again.
    pub(super) ran_ns: u64,
    /// The stack that was sampled when the thread fell asleep.
    pub(super) stack: Option<u32>,
}

/// The waits for words outside of objects whose operations were recorded.
pub(super) fn sleeps(timeline: &Timeline) -> impl Iterator<Item = Slept<'_>> {
    let recorded: FxHashSet<(u32, u64)> =
        timeline.locks.iter().map(|lock| (lock.pid, lock.address)).collect();
    let is_recorded = move |pid: u32, address: u64| {
        (0..LOCK_BYTES / 4).any(|word| recorded.contains(&(pid, address.wrapping_sub(word * 4))))
    };
    let spans = (0u32..).zip(&timeline.threads).flat_map(|(index, thread)| {
        thread.spans().enumerate().map(move |(at, span)| (index, thread, at, span))
    });
    spans.filter_map(move |(index, thread, at, (start, end, state))| {
        let State::Blocked(number) = state else { return None };
        let wait = thread.waits.get(number as usize)?;
        let address = word(wait).filter(|&address| !is_recorded(thread.pid, address))?;
        Some(Slept {
            index,
            wait,
            number,
            key: (thread.pid, address),
            start_ns: start.0,
            ran_ns: runs_after(thread, at).unwrap_or(end.0),
            stack: thread.stack_at(start, SampleReason::Block),
        })
    })
}

fn wakes(timeline: &Timeline, words: &mut FxHashMap<(u32, u64), Word>) {
    for wakeup in &timeline.wakeups {
        let Some((wakee, wait)) = timeline.ended_by(wakeup) else { continue };
        let word = word(wait).and_then(|address| words.get_mut(&(wakee.pid, address)));
        if let Some(word) = word {
            word.threads.entry(wakeup.waker).or_default().wakes.push((wakeup.time.0, wakeup.time.0));
        }
    }
}

/// The futex word of a wait; `None` if there are several, if the wait moved to another, or if its end is not known.
pub(super) fn word(wait: &Wait) -> Option<u64> {
    let WaitReason::Futex(futex) = wait.reason else { return None };
    let is_whole = !matches!(wait.wake, Wake::CutByUnknown);
    (futex.words <= 1 && wait.moved_to.is_none() && is_whole).then_some(futex.word)
}

/// Time at which the thread runs next after an interval; `None` if its state is unknown or it first sleeps again.
fn runs_after(thread: &Thread, interval: usize) -> Option<u64> {
    let after = thread.intervals.iter().skip(interval + 1);
    let next = after.take(4).find(|next| !matches!(next.state, State::Runnable))?;
    matches!(next.state, State::Running { .. }).then_some(next.start.0)
}
