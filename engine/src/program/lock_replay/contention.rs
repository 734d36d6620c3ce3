//! Finds which lock operations had to wait, and for how long.

use super::nesting::Nesting;
use crate::timeline::{LockOperation, State, Timeline};
use probe_abi::{OperationFlags, SyncOperation as S};

/// Waits of lock operations; each list has an entry for each operation.
#[derive(Clone, Debug, Default)]
pub(super) struct Contention {
    /// Whether the object was not free when the operation began, or the thread slept or spun in it.
    pub(super) contended: Vec<bool>,
    /// Nanoseconds from the operation's beginning to its end. For a contended spin lock, the time of an acquisition of
    /// a free lock is subtracted.
    pub(super) waited: Vec<u64>,
}

/// A spin lock was contended if the call took more than this many times as long as a release, which never waits. Up to that,
/// the additional time may be a cache line's transfer from another CPU.
const SPAN: u64 = 4;

impl Contention {
    pub(super) fn of(timeline: &Timeline, nesting: &Nesting) -> Contention {
        let free_ns = free_spin_lock(timeline);
        let mut out = Contention::default();
        for (used, slept) in timeline.lock_operations.iter().zip(&nesting.slept) {
            let length = used.ended.0.saturating_sub(used.began.0);
            let span =
                matches!(used.operation, S::SpinLock) && ran(timeline, used) > free_ns.saturating_mul(SPAN);
            out.contended.push(span || *slept || used.flags & OperationFlags::CONTENDED != 0);
            out.waited.push(if span { length.saturating_sub(free_ns) } else { length });
        }
        out
    }
}

/// Time to take a free spin lock, nanoseconds: the median of releases, measured with the same two clock readings. 0 if there
/// are none.
fn free_spin_lock(timeline: &Timeline) -> u64 {
    let given = timeline.lock_operations.iter().filter(|used| used.operation == S::SpinUnlock);
    let mut lengths: Vec<u64> = given.map(|used| ran(timeline, used)).collect();
    let middle = lengths.len() / 2;
    match lengths.get(middle) {
        Some(_) => *lengths.select_nth_unstable(middle).1,
        None => 0,
    }
}

/// The thread's CPU time inside the operation.
pub(super) fn ran(timeline: &Timeline, used: &LockOperation) -> u64 {
    let Some(thread) = timeline.threads.get(used.thread as usize) else { return 0 };
    let first = thread.intervals.partition_point(|interval| interval.start <= used.began).saturating_sub(1);
    let ends = thread.intervals.iter().skip(first + 1).map(|next| next.start).chain([thread.end]);
    let mut sum: u64 = 0;
    for (interval, end) in thread.intervals.iter().skip(first).zip(ends) {
        if interval.start >= used.ended {
            break;
        }
        if matches!(interval.state, State::Running { .. }) {
            let length = end.0.min(used.ended.0).saturating_sub(interval.start.0.max(used.began.0));
            sum = sum.saturating_add(length);
        }
    }
    sum
}
