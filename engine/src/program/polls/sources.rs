//! Finds the thread that changed what another thread checks after its time limit, and when.

use super::chains::Limited;
use super::shares::Shares;
use super::{Poll, Polls};
use crate::timeline::{LockOperation, NO_OBJECT, State, Thread, Timeline};
use probe_abi::SyncOperation as S;
use rustc_hash::FxHashMap;

/// A thread that stops computing at most this long before another one continues is assumed to be that thread's waker,
/// nanoseconds.
const JUST_NOW_NS: u64 = 100_000;
/// The threads that may have made the change.
pub(super) struct Sources {
    /// For each thread: stretches of running, ascending, without mere checks; empty for housekeeping threads.
    ran: Vec<Vec<(u64, u64)>>,
    /// For each process: its threads that are not housekeeping threads.
    peers: FxHashMap<u32, Vec<usize>>,
    /// For each thread: its timed condition waits, in order of their ends.
    timed: Vec<Vec<LockOperation>>,
    /// For each mutex: times of its releases, ascending, with the releasing threads.
    given: FxHashMap<u32, Vec<(u64, usize)>>,
}

impl Sources {
    pub(super) fn of(timeline: &Timeline, polls: &Polls, shares: &Shares) -> Sources {
        let mut sources = Sources {
            ran: Vec::with_capacity(timeline.threads.len()),
            peers: FxHashMap::default(),
            timed: vec![Vec::new(); timeline.threads.len()],
            given: FxHashMap::default(),
        };
        for (index, thread) in timeline.threads.iter().enumerate() {
            let works = shares.works(timeline, index);
            let polls = polls.waits.get(index).map_or(&[][..], Vec::as_slice);
            sources.ran.push(if works { ran(thread, polls) } else { Vec::new() });
            if works {
                sources.peers.entry(thread.pid).or_default().push(index);
            }
        }
        for used in &timeline.lock_operations {
            match used.operation {
                S::ConditionTimedWait if used.second != NO_OBJECT => {
                    if let Some(timed) = sources.timed.get_mut(used.thread as usize) {
                        timed.push(*used);
                    }
                }
                S::MutexUnlock => {
                    let given = sources.given.entry(used.object).or_default();
                    given.push((used.began.0, used.thread as usize));
                }
                _ => {}
            }
        }
        sources.given.values_mut().for_each(|given| given.sort_unstable());
        sources
    }

    /// The thread that ended this wait, and when.
    pub(super) fn of_wait(&self, timeline: &Timeline, index: usize, wait: &Limited) -> Option<(usize, u64)> {
        let timed = self.timed.get(index)?;
        let at = timed.partition_point(|used| used.ended.0 < wait.end);
        let used = timed.get(at).filter(|used| used.began.0 <= wait.start);
        // The polled word may be next to the mutex, so waits for either count.
        used.and_then(|used| self.by_mutex(index, used, wait.start, wait.end))
            .or_else(|| self.by_computing(index, timeline.threads.get(index)?.pid, wait.start, wait.end))
    }

    /// The last thread that released the mutex before this thread took it again. A thread that holds the mutex when the
    /// time limit ends releases it a little later; that counts, too.
    fn by_mutex(&self, index: usize, used: &LockOperation, start: u64, end: u64) -> Option<(usize, u64)> {
        let given = self.given.get(&used.second)?;
        let before = given.partition_point(|(time, _)| *time < used.ended.0);
        let given = given.get(..before).unwrap_or_default().iter().rev();
        let (time, source) =
            given.take_while(|(time, _)| *time > start).find(|(_, thread)| *thread != index)?;
        Some((*source, (*time).min(end.saturating_sub(1))))
    }

    fn by_computing(&self, index: usize, pid: u32, start: u64, end: u64) -> Option<(usize, u64)> {
        let (mut stopped, mut computing): (Option<(u64, usize)>, Option<usize>) = (None, None);
        for &peer in self.peers.get(&pid)?.iter().filter(|peer| **peer != index) {
            let Some(ran) = self.ran.get(peer) else { continue };
            let before = ran.partition_point(|(from, _)| *from < end);
            let Some((_, to)) = before.checked_sub(1).and_then(|last| ran.get(last)) else { continue };
            if *to >= end {
                computing.get_or_insert(peer);
            } else if *to > start && stopped.is_none_or(|(time, _)| time < *to) {
                stopped = Some((*to, peer));
            }
        }
        match (stopped, computing) {
            (Some((time, thread)), _) if end - time <= JUST_NOW_NS => Some((thread, time)),
            (_, Some(thread)) => Some((thread, end.saturating_sub(1))),
            (Some((time, thread)), None) => Some((thread, time)),
            (None, None) => None,
        }
    }
}

/// Stretches in which a thread ran, without those between two waits that count as one wait.
fn ran(thread: &Thread, polls: &[Poll]) -> Vec<(u64, u64)> {
    let mut ran: Vec<(u64, u64)> = Vec::new();
    let mut looks = false;
    for (start, end, state) in thread.spans() {
        match state {
            State::Blocked(wait) => looks = polls.get(wait as usize) == Some(&Poll::Nothing),
            State::Running { .. } if !looks => match ran.last_mut() {
                Some(last) if last.1 == start.0 => last.1 = end.0,
                _ => ran.push((start.0, end.0)),
            },
            _ => {}
        }
    }
    ran
}
