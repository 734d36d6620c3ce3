//! Finds when threads finished their work for a request: a thread's work before that time was for this request, and not
//! for a later one.

use super::calls::Request;
use super::peers::Peers;
use super::waits::Waits;
use crate::timeline::{Thread, Timeline};

/// Times of answers, ends and begins, by thread and in order of time.
#[derive(Debug, Default)]
pub(super) struct Answers {
    /// For each thread: times at which it ended a wait (other than for a lock) of a thread in a request, with the index
    /// of that thread.
    given: Vec<Vec<(u64, u32)>>,
    /// For each thread: times at which requests ended in it.
    ends: Vec<Vec<u64>>,
    /// For each thread: times at which requests began in it.
    begins: Vec<Vec<u64>>,
    /// For each thread: from when until when it worked for the requests that ended in it, in order of their ends. A request that
    /// another thread took may have begun later.
    turns: Vec<Vec<(u64, u64)>>,
    /// The requests that both begin and end in one thread.
    pub(super) peers: Peers,
}

impl Answers {
    pub(super) fn of(timeline: &Timeline, requests: &[Request], waits: &Waits<'_>) -> Answers {
        let threads = timeline.threads.len();
        let mut answers = Answers {
            given: vec![Vec::new(); threads],
            ends: vec![Vec::new(); threads],
            begins: vec![Vec::new(); threads],
            turns: vec![Vec::new(); threads],
            peers: Peers::default(),
        };
        // For each thread: beginning and end of the requests that both begin and end in it.
        let mut open: Vec<Vec<(u64, u64)>> = vec![Vec::new(); threads];
        for request in requests {
            let end = request.end.unwrap_or(timeline.end).0;
            if let Some(begins) = answers.begins.get_mut(request.begin_thread as usize) {
                begins.push(request.taken.0);
            }
            if let (Some(ends), Some(_)) = (answers.ends.get_mut(request.end_thread as usize), request.end) {
                ends.push(end);
                if let Some(turns) = answers.turns.get_mut(request.end_thread as usize) {
                    turns.push((request.taken.0, end));
                }
            }
            if request.begin_thread == request.end_thread
                && let Some(open) = open.get_mut(request.begin_thread as usize)
            {
                open.push((request.taken.0, end));
            }
        }
        open.iter_mut().for_each(|open| open.sort_unstable());
        answers.turns.iter_mut().for_each(|turns| turns.sort_unstable_by_key(|(from, to)| (*to, *from)));
        answers.ends.iter_mut().for_each(|ends| ends.sort_unstable());
        answers.begins.iter_mut().for_each(|begins| begins.sort_unstable());
        for wakeup in &timeline.wakeups {
            let Some(number) = wakeup.ended else { continue };
            let own = open.get(wakeup.wakee as usize).map_or(&[][..], Vec::as_slice);
            let next = own.partition_point(|(from, _)| *from <= wakeup.time.0);
            let is_in =
                next.checked_sub(1).and_then(|at| own.get(at)).is_some_and(|(_, to)| wakeup.time.0 < *to);
            if !is_in || waits.lock(wakeup.wakee, number).is_some() {
                continue;
            }
            if let Some(given) = answers.given.get_mut(wakeup.waker as usize) {
                given.push((wakeup.time.0, wakeup.wakee));
            }
        }
        answers.given.iter_mut().for_each(|given| given.sort_unstable());
        // Goroutines change threads, so a thread's wait says nothing about the request that it read.
        let is_of_go = |thread: &Thread| timeline.go.contains(&thread.pid);
        timeline
            .threads
            .iter()
            .zip(&mut open)
            .filter(|(of, _)| is_of_go(of))
            .for_each(|(_, own)| own.clear());
        answers.peers = Peers::of(open);
        answers
    }

    /// Time at which `thread` last ended a wait for another request, between `from` and `to`: of a thread other than `wakee`, or
    /// of `wakee` if that has several requests at a time.
    pub(super) fn last_to_another(&self, thread: u32, wakee: u32, from: u64, to: u64) -> Option<u64> {
        let given = self.given.get(thread as usize)?;
        let end = given.partition_point(|(time, _)| *time < to);
        let between = given.get(..end)?.iter().rev().take_while(|(time, _)| *time > from);
        let several = self.peers.has_several(wakee);
        between.take(NEAR).find(|(_, other)| several || *other != wakee).map(|(time, _)| *time)
    }

    /// Time at which the last request before `before` ended in this thread.
    pub(super) fn last_end(&self, thread: u32, before: u64) -> Option<u64> {
        let ends = self.ends.get(thread as usize)?;
        ends.partition_point(|time| *time < before).checked_sub(1).and_then(|last| ends.get(last)).copied()
    }

    /// The last turn of this thread that ended by `time`: from when until when it worked for a request.
    pub(super) fn last_turn(&self, thread: u32, time: u64) -> Option<(u64, u64)> {
        let turns = self.turns.get(thread as usize)?;
        let next = turns.partition_point(|(_, to)| *to <= time);
        next.checked_sub(1).and_then(|last| turns.get(last)).copied()
    }

    /// Time at which the next request after `after` began in this thread.
    pub(super) fn next_begin(&self, thread: u32, after: u64) -> Option<u64> {
        let begins = self.begins.get(thread as usize)?;
        begins.get(begins.partition_point(|time| *time <= after)).copied()
    }
}

/// An answer to another thread is searched among at most this number of consecutive answers to the same thread.
const NEAR: usize = 64;
