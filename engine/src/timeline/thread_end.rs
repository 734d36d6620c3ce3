//! Which waits are for the end of a thread (`pthread_join`), and which are for a semaphore that processes share.
//!
//! C libraries wait for both in the same way: not private, by the bitset command. But the kernel wakes a joining thread while the
//! other thread ends, and a thread that posts a semaphore goes on.

use super::model::{State, Thread, Timeline, Wake};
use super::thread::wait_reason::WaitReason;
use crate::event::{FutexFact, futex_operation};
use rustc_hash::FxHashSet;

/// Process and address of words that threads waited for as for a thread's end, and that a thread woke which went on.
pub(super) fn semaphores(timeline: &Timeline) -> FxHashSet<(u32, u64)> {
    let mut semaphores = FxHashSet::default();
    for thread in &timeline.threads {
        for wait in &thread.waits {
            if let (WaitReason::Futex(futex), Wake::By(wakeup)) = (wait.reason, wait.wake)
                && may_be_thread_end(futex)
                && let Some(wakeup) = timeline.wakeups.get(wakeup as usize)
                && let Some(waker) = timeline.threads.get(wakeup.waker as usize)
                && !ended_after(waker, wakeup.time.0)
            {
                semaphores.insert((thread.pid, futex.word));
            }
        }
    }
    semaphores
}

/// Whether the thread died and did not wait for anything after this time.
fn ended_after(thread: &Thread, time: u64) -> bool {
    let spans = thread.intervals.iter().rev().take_while(|interval| interval.start.0 > time);
    thread.died && !spans.into_iter().any(|interval| matches!(interval.state, State::Blocked(_)))
}

/// Whether a C library waits so for the word that the kernel clears when a thread ends.
fn may_be_thread_end(futex: FutexFact) -> bool {
    const PRIVATE: u32 = 128;
    const WAIT_BITSET: u32 = 9;
    futex.words == 0 && futex.operation & PRIVATE == 0 && futex_operation(futex.operation) == WAIT_BITSET
}

impl Timeline {
    /// Whether a thread of process `pid` that waits for this futex waits for the end of another thread.
    pub fn is_thread_end(&self, pid: u32, futex: FutexFact) -> bool {
        may_be_thread_end(futex) && !self.semaphores.contains(&(pid, futex.word))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::Timestamp;
    use crate::timeline::{Interval, Wait, Wakeup};

    /// A thread waits for a word of process 1 until another thread wakes it, which then waits at 20 unless it `dies`.
    fn is_thread_end(dies: bool) -> bool {
        const WAIT_BITSET_REALTIME: u32 = 9 | 256;
        let futex = FutexFact { word: 64, operation: WAIT_BITSET_REALTIME, words: 0 };
        let wait = Wait {
            reason: WaitReason::Futex(futex),
            wake: Wake::By(0),
            cut_at_start: false,
            moved_to: None,
            from_now: false,
        };
        let waiter = Thread { pid: 1, waits: vec![wait], ..Thread::default() };
        let last = if dies { State::Runnable } else { State::Blocked(0) };
        let intervals = [(0, State::Running { cpu: None }), (20, last)];
        let intervals =
            intervals.map(|(start, state)| Interval { start: Timestamp(start), state, first_step: 0 });
        let waker = Thread { pid: 1, died: dies, intervals: intervals.to_vec(), ..Thread::default() };
        let wakeup = Wakeup { time: Timestamp(10), waker: 1, wakee: 0, ended: Some(0) };
        let mut timeline =
            Timeline { threads: vec![waiter, waker], wakeups: vec![wakeup], ..Timeline::default() };
        timeline.semaphores = semaphores(&timeline);
        timeline.is_thread_end(1, futex)
    }

    #[test]
    fn a_word_that_a_living_thread_wakes_is_a_semaphore() {
        assert!(is_thread_end(true));
        assert!(!is_thread_end(false));
    }
}
