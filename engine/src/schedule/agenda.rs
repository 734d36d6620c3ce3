//! Who acts next: threads whose timed step ends later, and those that are ready at this instant.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

/// One rule for order: by time, and at the same time in the order of becoming due (module doc).
#[derive(Debug, Default)]
pub(super) struct Agenda {
    now: u64,
    started: bool,
    sequence: u64,
    later: BinaryHeap<Reverse<Due>>,
    ready: VecDeque<u32>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Due {
    time: u64,
    /// When it was entered, as a count: breaks ties.
    sequence: u64,
    thread: u32,
}

impl Agenda {
    pub(super) fn now(&self) -> u64 {
        self.now
    }

    /// Moves on to the next instant at which something happens; `None` if nothing ever does.
    pub(super) fn next_instant(&mut self) -> Option<u64> {
        if !self.started {
            self.started = true;
            return Some(self.now);
        }
        self.now = self.later.peek()?.0.time;
        Some(self.now)
    }

    /// The next thread to act at this instant.
    pub(super) fn next_thread(&mut self) -> Option<u32> {
        // What was entered earlier for this instant comes before what became ready during it: `at` never enters
        // this instant into `later`.
        if let Some(Reverse(due)) = self.later.peek()
            && due.time == self.now
        {
            let thread = due.thread;
            self.later.pop();
            return Some(thread);
        }
        self.ready.pop_front()
    }

    /// The thread acts again at this instant, after all that are ready.
    pub(super) fn soon(&mut self, thread: u32) {
        self.ready.push_back(thread);
    }

    /// The thread acts again after this time.
    pub(super) fn after(&mut self, length: u64, thread: u32) {
        if length == 0 {
            return self.soon(thread);
        }
        self.sequence = self.sequence.wrapping_add(1);
        let time = self.now.saturating_add(length);
        self.later.push(Reverse(Due { time, sequence: self.sequence, thread }));
    }
}
