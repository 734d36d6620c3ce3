//! Futex words that are mutexes, with the waits for them and the wake-ups that ended these. A word is one if
//! a thread was sampled waiting for it in a function whose name says so: C libraries, Rust's standard library
//! and others call it by that name.

use super::super::model::{State, Thread, Timeline, Wait, Wake};
use super::super::wait_reason::WaitReason;
use super::lock_samples::{CallId, Calls};
use probe_abi::SampleReason;
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::{BTreeMap, BTreeSet};

/// Largest lock of a C library in which a word may lie, bytes.
const LOCK_BYTES: u64 = 56;

/// See the module.
#[derive(Clone, Debug, Default)]
pub(super) struct Word {
    pub(super) pid: u32,
    pub(super) address: u64,
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
    /// Wake-ups of other waiters.
    pub(super) wakes: Vec<u64>,
}

/// The mutexes that no recorded operation is about, those with the most waits first.
pub(super) fn find(timeline: &Timeline, calls: &Calls) -> Vec<Word> {
    let is_recorded = recorded_places(timeline);
    let mut words: FxHashMap<(u32, u64), Word> = FxHashMap::default();
    let mut mutexes: FxHashSet<(u32, u64)> = FxHashSet::default();
    for (index, thread) in (0u32..).zip(&timeline.threads) {
        for (at, (start, end, state)) in thread.spans().enumerate() {
            let State::Blocked(number) = state else { continue };
            let Some(wait) = thread.waits.get(number as usize) else { continue };
            let Some(address) = word(wait).filter(|&address| !is_recorded(thread.pid, address)) else {
                continue;
            };
            let key = (thread.pid, address);
            let known = words.entry(key).or_insert_with(|| Word {
                pid: thread.pid,
                address,
                first: (start.0, index),
                ..Word::default()
            });
            known.first = known.first.min((start.0, index));
            known.waits += 1;
            let ran = runs_after(thread, at).unwrap_or(end.0);
            known.threads.entry(index).or_default().waits.push((start.0, ran));
            if let Some(stack) = thread.stack_at(start, SampleReason::Block) {
                known.calls.extend(calls.takes(stack));
                if calls.is_mutex(stack) {
                    mutexes.insert(key);
                }
            }
        }
    }
    words.retain(|key, _| mutexes.contains(key));
    wakes(timeline, &mut words);
    let mut words: Vec<Word> = words.into_values().collect();
    words.sort_by_key(|word| (std::cmp::Reverse(word.waits), word.pid, word.address));
    words
}

/// Whether a word, by process and address, lies in an object whose operations were recorded.
pub(super) fn recorded_places(timeline: &Timeline) -> impl Fn(u32, u64) -> bool + use<> {
    let recorded: FxHashSet<(u32, u64)> =
        timeline.locks.iter().map(|lock| (lock.pid, lock.address)).collect();
    move |pid, address| {
        (0..LOCK_BYTES / 4).any(|word| recorded.contains(&(pid, address.wrapping_sub(word * 4))))
    }
}

fn wakes(timeline: &Timeline, words: &mut FxHashMap<(u32, u64), Word>) {
    for wakeup in &timeline.wakeups {
        let Some(wakee) = timeline.threads.get(wakeup.wakee as usize) else { continue };
        let wait = wakeup.ended.and_then(|wait| wakee.waits.get(wait as usize));
        let Some(address) = wait.and_then(word) else { continue };
        if let Some(word) = words.get_mut(&(wakee.pid, address)) {
            word.threads.entry(wakeup.waker).or_default().wakes.push(wakeup.time.0);
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
pub(super) fn runs_after(thread: &Thread, interval: usize) -> Option<u64> {
    let after = thread.intervals.iter().skip(interval + 1);
    let next = after.take(4).find(|next| !matches!(next.state, State::Runnable))?;
    matches!(next.state, State::Running { .. }).then_some(next.start.0)
}
