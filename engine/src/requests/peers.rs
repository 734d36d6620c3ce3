//! Threads that each answer one request at a time and wait for each other meanwhile (a method of longpole's own).
//!
//! Such a thread's request can wait for another thread's request only if both need something that one of them can have at a
//! time: a lock that the program makes of semaphores, signals or pipes, or a lock of the kernel.

/// Threads count as answering one request at a time if at most this share of their requests overlap others.
const OVERLAP: f64 = 0.1;

/// The requests of threads that answer one at a time.
#[derive(Debug, Default)]
pub(super) struct Peers {
    /// For each thread: from when until when it worked for its own requests, in order of time; empty if it answers several at
    /// a time.
    own: Vec<Vec<(u64, u64)>>,
    /// For each thread: whether it answers several requests at a time, as an event loop does.
    several: Vec<bool>,
}

impl Peers {
    /// `own`: for each thread, the requests that both begin and end in it, in order of time.
    pub(super) fn of(mut own: Vec<Vec<(u64, u64)>>) -> Peers {
        let has_several = |requests: &Vec<(u64, u64)>| {
            let overlap =
                requests.windows(2).filter(|two| matches!(two, [(_, end), (next, _)] if next < end));
            overlap.count() as f64 > OVERLAP * requests.len() as f64
        };
        let several: Vec<bool> = own.iter().map(has_several).collect();
        own.iter_mut().zip(&several).filter(|(_, several)| **several).for_each(|(own, _)| own.clear());
        Peers { own, several }
    }

    /// Whether the thread answers several requests at a time.
    pub(super) fn has_several(&self, thread: u32) -> bool {
        self.several.get(thread as usize).copied().unwrap_or(false)
    }

    /// Whether `waker` works for the requests of the event loop `thread`, and reads none itself.
    pub(super) fn is_loop_s_worker(&self, thread: u32, waker: u32) -> bool {
        let reads = self.own.get(waker as usize).is_some_and(|own| !own.is_empty());
        self.has_several(thread) && !self.has_several(waker) && !reads
    }

    /// Whether `waiter`, in a request of its own, was woken at `time` by a thread that answers other requests.
    pub(super) fn waits_for_another(&self, waiter: u32, waker: u32, time: u64) -> bool {
        waiter != waker
            && self.last(waiter, time).is_some_and(|(_, end)| time <= end)
            && self.own.get(waker as usize).is_some_and(|own| !own.is_empty())
    }

    /// Time from which the thread worked for its last request before `time`.
    pub(super) fn began(&self, thread: u32, time: u64) -> Option<u64> {
        self.last(thread, time).map(|(begin, _)| begin)
    }

    fn last(&self, thread: u32, time: u64) -> Option<(u64, u64)> {
        let own = self.own.get(thread as usize)?;
        own.partition_point(|(begin, _)| *begin < time).checked_sub(1).and_then(|last| own.get(last)).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_threads_that_answer_one_request_at_a_time_wait_for_each_other() {
        let peers = Peers::of(vec![vec![(10, 20), (30, 40)], vec![(5, 15)], vec![(0, 30), (10, 40)], vec![]]);
        assert!(peers.waits_for_another(0, 1, 15));
        assert!(!peers.waits_for_another(0, 1, 25), "between two requests a thread waits for work");
        assert!(!peers.waits_for_another(0, 2, 15), "an event loop may wake a thread to give it work");
        assert!(!peers.waits_for_another(0, 3, 15), "a thread without requests works for others' requests");
        assert_eq!(peers.began(0, 35), Some(30));
        assert_eq!(peers.began(0, 10), None);
    }
}
