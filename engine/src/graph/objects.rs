//! Which operation lets which other one get past, rebuilt from the order in which they took effect: what each kind of
//! synchronization object remembers. The rules are those of [`crate::schedule`], file by file.

use super::activity::VertexId;
use std::collections::VecDeque;

/// A counting semaphore: the n-th wait takes the n-th count.
#[derive(Debug, Default)]
pub(super) struct Counts {
    /// Counts not taken yet, in order: after which vertex, and how many.
    given: VecDeque<(VertexId, u32)>,
    /// Threads that got a count whose giver is yet to come: it is noted after those it lets pass.
    early: VecDeque<usize>,
}

impl Counts {
    /// A thread gets past: after whom, if that is known by now.
    pub(super) fn take(&mut self, thread: usize) -> Option<VertexId> {
        let Some((vertex, left)) = self.given.front_mut() else {
            self.early.push_back(thread);
            return None;
        };
        let vertex = *vertex;
        *left -= 1;
        if *left == 0 {
            self.given.pop_front();
        }
        Some(vertex)
    }

    /// Counts are given; returns the threads that have taken some of them already.
    pub(super) fn give(&mut self, vertex: VertexId, count: u32) -> Vec<usize> {
        let taken = self.early.len().min(count as usize);
        if count as usize > taken {
            self.given.push_back((vertex, count - taken as u32));
        }
        self.early.drain(..taken).collect()
    }

    /// The semaphore is set: what was given before is gone.
    pub(super) fn clear(&mut self) {
        self.given.clear();
    }
}

/// A mutex or a spin lock.
#[derive(Debug, Default)]
pub(super) struct Exclusive {
    pub(super) owner: Option<usize>,
    pub(super) freed: Option<VertexId>,
}

impl Exclusive {
    /// The thread takes it: after whom.
    pub(super) fn take(&mut self, thread: usize) -> Option<VertexId> {
        self.owner = Some(thread);
        self.freed
    }

    /// The thread releases it at this vertex, if it holds it.
    pub(super) fn give_back(&mut self, thread: usize, vertex: VertexId) {
        if self.owner == Some(thread) {
            self.owner = None;
            self.freed = Some(vertex);
        }
    }
}

/// A read-write lock.
#[derive(Debug, Default)]
pub(super) struct ReadWrite {
    writer: Option<usize>,
    /// The last writer left here.
    written: Option<VertexId>,
    /// Readers that left since a writer last got in.
    read: Vec<VertexId>,
}

impl ReadWrite {
    /// A reader gets in: after which writer.
    pub(super) fn read(&mut self) -> Option<VertexId> {
        self.written
    }

    /// A writer gets the lock: after which threads. Every reader must have left, not only the last.
    pub(super) fn write(&mut self, thread: usize) -> Vec<VertexId> {
        self.writer = Some(thread);
        let mut after = std::mem::take(&mut self.read);
        after.extend(self.written);
        after
    }

    /// A thread leaves, from whichever side it was on.
    pub(super) fn leave(&mut self, thread: usize, vertex: VertexId) {
        if self.writer == Some(thread) {
            self.writer = None;
            self.written = Some(vertex);
        } else {
            self.read.push(vertex);
        }
    }
}

/// A condition variable.
#[derive(Debug, Default)]
pub(super) struct Condition {
    /// The waiting threads, first come first served.
    waiting: VecDeque<usize>,
}

impl Condition {
    /// A thread begins to wait.
    pub(super) fn wait(&mut self, thread: usize) {
        self.waiting.push_back(thread);
    }

    /// Signals `most` times, or as often as threads wait; returns the threads that are woken by it.
    pub(super) fn signal(&mut self, most: usize) -> Vec<usize> {
        self.waiting.drain(..most.min(self.waiting.len())).collect()
    }
}

/// What lets every thread past from one moment on: `once` whose body has ended, or a replayed wake edge.
#[derive(Debug, Default)]
pub(super) struct Latch {
    opened: Option<VertexId>,
    /// Threads that got past before the opening was noted.
    early: Vec<usize>,
}

impl Latch {
    /// A thread gets past: after whom, if that is known by now.
    pub(super) fn take(&mut self, thread: usize) -> Option<VertexId> {
        if self.opened.is_none() {
            self.early.push(thread);
        }
        self.opened
    }

    /// It opens at this vertex, if it is the first time; returns the threads that got past before.
    pub(super) fn open(&mut self, vertex: VertexId) -> Vec<usize> {
        self.opened.get_or_insert(vertex);
        std::mem::take(&mut self.early)
    }
}

/// A barrier: those that have got past together so far.
#[derive(Debug, Default)]
pub(super) struct Barrier {
    pub(super) met: Vec<usize>,
}
