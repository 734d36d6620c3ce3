//! Futex words that are mutexes, with the waits for them and the wake-ups that ended these. A word is one if
//! a thread was sampled waiting for it in a function whose name says so: C libraries, Rust's standard library
//! and others call it by that name.

use super::super::model::{State, Thread, Timeline, Wait, Wake};
use super::super::wait_reason::WaitReason;
use super::lock_samples::{CallId, Calls};
use crate::event::ReadWrite;
use probe_abi::SampleReason;
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::{BTreeMap, BTreeSet};

/// Largest lock of a C library in which a word may lie, bytes.
const LOCK_BYTES: u64 = 56;

/// A mutex, or one side of a read-write lock.
#[derive(Clone, Debug, Default)]
pub(super) struct Word {
    pub(super) pid: u32,
    /// The first of its words.
    pub(super) address: u64,
    /// All of them: a mutex has one.
    pub(super) addresses: BTreeSet<u64>,
    /// For what it is taken here, if it is a read-write lock.
    pub(super) side: Option<ReadWrite>,
    /// When it was first waited for, and by which thread.
    pub(super) first: (u64, u32),
    /// Calls in which threads waited for it, with code after them that is known to run under the lock.
    pub(super) calls: BTreeSet<CallId>,
    /// By thread.
    pub(super) threads: BTreeMap<u32, Marks>,
    /// How often threads waited.
    pub(super) waits: u64,
}

/// What a thread did with a word, each in order of time.
#[derive(Clone, Debug, Default)]
pub(super) struct Marks {
    /// Waits: begin, and when the thread ran again.
    pub(super) waits: Vec<(u64, u64)>,
    /// Releases that woke others: the first and the last of them.
    pub(super) wakes: Vec<(u64, u64)>,
}

/// The mutexes that no recorded operation is about.
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

/// A wait for a word.
pub(super) struct Slept<'a> {
    pub(super) index: u32,
    pub(super) wait: &'a Wait,
    /// Its number in the thread.
    pub(super) number: u32,
    /// Process and address of the word.
    pub(super) key: (u32, u64),
    pub(super) start_ns: u64,
    /// When the thread ran again.
    pub(super) ran_ns: u64,
    /// The stack that was sampled when it began.
    pub(super) stack: Option<u32>,
}

/// The waits for words that do not lie in objects whose operations were recorded.
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
        let Some(wakee) = timeline.threads.get(wakeup.wakee as usize) else { continue };
        let wait = wakeup.ended.and_then(|wait| wakee.waits.get(wait as usize));
        let Some(address) = wait.and_then(word) else { continue };
        if let Some(word) = words.get_mut(&(wakee.pid, address)) {
            word.threads.entry(wakeup.waker).or_default().wakes.push((wakeup.time.0, wakeup.time.0));
        }
    }
}

/// The word that a wait is for, if it is one and stayed it, and the wait has both ends.
pub(super) fn word(wait: &Wait) -> Option<u64> {
    let WaitReason::Futex(futex) = wait.reason else { return None };
    let is_whole = !matches!(wait.wake, Wake::CutByUnknown);
    (futex.words <= 1 && wait.moved_to.is_none() && is_whole).then_some(futex.word)
}

/// When the thread runs next after an interval, if nothing unknown comes before.
fn runs_after(thread: &Thread, interval: usize) -> Option<u64> {
    let after = thread.intervals.iter().skip(interval + 1);
    let next = after.take(4).find(|next| !matches!(next.state, State::Runnable))?;
    matches!(next.state, State::Running { .. }).then_some(next.start.0)
}
