//! Decides which thread acts next: it has a heap of ends of timed steps, and a queue of threads that are ready at this
//! instant. Without further parts, it is the machine with unlimited processors.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use super::machine::{Machine, Turn, Why};
use crate::program::ObjectId;

/// Threads in the order of their turns: by time, and at the same time in the order in which they became due.
#[derive(Debug, Default)]
pub struct Agenda {
    now: u64,
    started: bool,
    sequence: u32,
    later: BinaryHeap<Reverse<Due>>,
    /// The thread on top of `later` is acting: the next use replaces or removes its entry.
    top_taken: bool,
    ready: VecDeque<u32>,
}

/// The end of a timed step: its time (upper 64 bits), the entry's number (32 bits), the thread (32 bits). One integer,
/// since comparing entries is most of the simulation's work. The number fits: a program has at most 2^31 operations,
/// each entered once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Due(u128);

impl Due {
    fn new(time: u64, sequence: u32, thread: u32) -> Due {
        Due((u128::from(time) << 64) | (u128::from(sequence) << 32) | u128::from(thread))
    }

    fn time(self) -> u64 {
        (self.0 >> 64) as u64
    }

    fn sequence(self) -> u32 {
        (self.0 >> 32) as u32
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
        // Entries of `later` for this instant precede threads that became ready during the instant, since `after` never
        // puts this instant into `later`.
        match self.next_due() {
            Some((thread, _)) => Some(thread),
            None => self.next_ready(),
        }
    }

    /// The next entry of `later` that is due at this instant: its thread and its number.
    #[inline]
    pub(super) fn next_due(&mut self) -> Option<(u32, u32)> {
        self.drop_taken();
        let Reverse(due) = self.later.peek()?;
        if due.time() > self.now {
            return None;
        }
        let due = *due;
        self.top_taken = true;
        Some((due.thread(), due.sequence()))
    }

    /// The next thread that became ready during this instant.
    pub(super) fn next_ready(&mut self) -> Option<u32> {
        self.ready.pop_front()
    }

    /// The thread acts again at this instant, after all that are ready.
    pub(super) fn soon(&mut self, thread: u32) {
        self.ready.push_back(thread);
    }

    /// The thread acts again after this time. Returns the entry's number; `None` for length 0, which needs no entry.
    #[inline]
    pub(super) fn after(&mut self, length: u64, thread: u32) -> Option<u32> {
        if length == 0 {
            self.soon(thread);
            return None;
        }
        self.sequence = self.sequence.wrapping_add(1);
        let due = Reverse(Due::new(self.now.saturating_add(length), self.sequence, thread));
        if std::mem::take(&mut self.top_taken)
            && let Some(mut top) = self.later.peek_mut()
        {
            *top = due;
            return Some(self.sequence);
        }
        self.later.push(due);
        Some(self.sequence)
    }

    fn drop_taken(&mut self) {
        if std::mem::take(&mut self.top_taken) {
            self.later.pop();
        }
    }
}

impl Machine for Agenda {
    const DECIDES: bool = true;

    fn now(&self) -> u64 {
        self.now()
    }

    fn next_instant(&mut self) -> Option<u64> {
        self.next_instant()
    }

    fn next_turn(&mut self) -> Option<Turn> {
        self.next_thread().map(Turn::Act)
    }

    fn wake(&mut self, thread: u32, _by: Option<u32>) {
        self.soon(thread);
    }

    fn compute(&mut self, thread: u32, length: u64) {
        self.after(length, thread);
    }

    fn block(&mut self, _thread: u32, _why: Why) {}

    fn expire(&mut self, thread: u32, length: u64) {
        self.after(length, thread);
    }

    fn spin(&mut self, _thread: u32, _object: ObjectId) {}

    fn is_spinning(&self, _thread: u32) -> bool {
        true
    }

    fn retry(&mut self, thread: u32, _by: u32) {
        self.soon(thread);
    }

    fn spinners_on_free_locks(&mut self, _more: bool) {}

    fn end(&mut self, _thread: u32) {}
}
