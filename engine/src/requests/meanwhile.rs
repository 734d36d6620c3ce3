//! What threads did while requests were queued for them.

use super::cause::{Cause, LockRef, Outside, PathPart};
use super::paths::Paths;
use crate::timeline::State;
use rustc_hash::FxHashMap;

/// What threads did while requests were queued for them, summed.
#[derive(Debug, Default)]
pub(super) struct Meanwhile {
    /// Time for which they ran, ns.
    pub(super) ran_ns: u64,
    /// Time for which they slept, ns.
    pub(super) asleep: FxHashMap<Asleep, u64>,
}

/// What a thread sleeps for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Asleep {
    Lock(LockRef),
    /// The thread with this index.
    Thread(u32),
    Outside(Outside),
}

impl Meanwhile {
    /// Adds what the thread of a part did. `left`: how many intervals may still be read; a part with more intervals is
    /// skipped.
    pub(super) fn add(&mut self, paths: &Paths<'_>, part: &PathPart, left: &mut u64) {
        let Some(thread) = paths.timeline.threads.get(part.thread as usize) else { return };
        let first = thread.intervals.partition_point(|of| of.start <= part.from).saturating_sub(1);
        let until = thread.intervals.partition_point(|of| of.start < part.to);
        let intervals = thread.intervals.get(first..until).unwrap_or_default();
        if intervals.len() as u64 > *left {
            return;
        }
        *left -= intervals.len() as u64;
        let ends = intervals.iter().skip(1).map(|next| next.start).chain([part.to.min(thread.end)]);
        for (interval, end) in intervals.iter().zip(ends) {
            let length = end.0.saturating_sub(interval.start.max(part.from).0);
            let sum = match interval.state {
                State::Running { .. } => &mut self.ran_ns,
                State::Blocked(wait) => match asleep(paths, part.thread, wait, interval.start.0) {
                    Some(asleep) => self.asleep.entry(asleep).or_insert(0),
                    None => continue,
                },
                State::Runnable | State::Unknown(_) => continue,
            };
            *sum = sum.saturating_add(length);
        }
    }
}

fn asleep(paths: &Paths<'_>, thread: u32, wait: u32, start: u64) -> Option<Asleep> {
    if let Some(lock) = paths.waits.lock(thread, wait) {
        return Some(Asleep::Lock(lock));
    }
    if let Some(waker) = paths.waits.ended_by(thread, wait) {
        return Some(Asleep::Thread(waker));
    }
    match paths.waits.outside(thread, wait, start, &paths.tops) {
        Cause::Waiting(outside) => Some(Asleep::Outside(outside)),
        _ => None,
    }
}
