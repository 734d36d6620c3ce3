//! Who acts next: threads whose timed step ends later, and those that are ready at this instant.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

/// One rule for order: by time, and at the same time in the order of becoming due (module doc).
#[derive(Debug, Default)]
pub(super) struct Agenda {
    now: u64,
    started: bool,
    sequence: u32,
    later: BinaryHeap<Reverse<Due>>,
    /// The thread on top of `later` is acting: its entry is replaced or removed with the next use.
    top_taken: bool,
    ready: VecDeque<u32>,
}

/// When a timed step ends (upper 64 bits), the how-manieth entry it is (32 bits), and whose (32 bits). One number,
/// since comparing these is most of the work of the whole simulation. A program has at most 2^31 operations, each of
/// which is entered once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Due(u128);

impl Due {
    fn new(time: u64, sequence: u32, thread: u32) -> Due {
        Due((u128::from(time) << 64) | (u128::from(sequence) << 32) | u128::from(thread))
    }

    fn time(self) -> u64 {
        (self.0 >> 64) as u64
    }

    fn thread(self) -> u32 {
        self.0 as u32
    }
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
        self.drop_taken();
        self.now = self.later.peek()?.0.time();
        Some(self.now)
    }

    /// The next thread to act at this instant.
    pub(super) fn next_thread(&mut self) -> Option<u32> {
        self.drop_taken();
        // What was entered earlier for this instant comes before what became ready during it: `after` never enters
        // this instant into `later`.
        if let Some(Reverse(due)) = self.later.peek()
            && due.time() == self.now
        {
            self.top_taken = true;
            return Some(due.thread());
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
        let due = Reverse(Due::new(self.now.saturating_add(length), self.sequence, thread));
        if std::mem::take(&mut self.top_taken)
            && let Some(mut top) = self.later.peek_mut()
        {
            *top = due;
            return;
        }
        self.later.push(due);
    }

    fn drop_taken(&mut self) {
        if std::mem::take(&mut self.top_taken) {
            self.later.pop();
        }
    }
}
