//! Finds out which operation lets which other one pass, from the order in which operations took effect. For that it
//! keeps the state of each kind of synchronization object. The rules are those of [`crate::schedule`], file by file.

use super::activity::VertexId;
use std::collections::VecDeque;

/// A counting semaphore: the n-th wait takes the n-th count.
#[derive(Debug, Default)]
pub(super) struct Counts {
    /// Counts not taken yet, in order: the vertex that posted them, and how many.
    given: VecDeque<(VertexId, u32)>,
    /// Threads that took a count whose post comes later in the walk: the trace has a post after the threads that it lets
    /// pass.
    early: VecDeque<usize>,
}

impl Counts {
    /// The thread takes a count; returns the vertex that posted it, if that is known by now.
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

    /// Adds counts; returns the threads that have taken some of them already.
    pub(super) fn give(&mut self, vertex: VertexId, count: u32) -> Vec<usize> {
        let taken = self.early.len().min(count as usize);
        if count as usize > taken {
            self.given.push_back((vertex, count - taken as u32));
        }
        self.early.drain(..taken).collect()
    }

    /// Initializing the semaphore discards earlier counts.
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
    /// The thread takes the lock; returns the vertex that freed it.
    pub(super) fn take(&mut self, thread: usize) -> Option<VertexId> {
        self.owner = Some(thread);
        self.freed
    }

    /// Releases the lock at this vertex if the thread holds it.
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
    /// The vertex at which the last writer released the lock.
    written: Option<VertexId>,
    /// Vertices of readers that released the lock since a writer last got it.
    read: Vec<VertexId>,
}

impl ReadWrite {
    /// A reader gets the lock; returns the vertex of the last writer.
    pub(super) fn read(&mut self) -> Option<VertexId> {
        self.written
    }

    /// A writer gets the lock; returns the vertices that it waited for. All readers count, not only the last to leave.
    pub(super) fn write(&mut self, thread: usize) -> Vec<VertexId> {
        self.writer = Some(thread);
        let mut after = std::mem::take(&mut self.read);
        after.extend(self.written);
        after
    }

    /// A reader or writer leaves.
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

    /// Signals at most `most` waiting threads; returns those woken.
    pub(super) fn signal(&mut self, most: usize) -> Vec<usize> {
        self.waiting.drain(..most.min(self.waiting.len())).collect()
    }
}

/// An object that lets every thread pass from one moment on, such as a `once` whose body has ended, or a replayed wake
/// edge.
#[derive(Debug, Default)]
pub(super) struct Latch {
    opened: Option<VertexId>,
    /// Threads that passed earlier in the walk than the opening.
    early: Vec<usize>,
}

impl Latch {
    /// The thread passes; returns the vertex of the opening, if that is known by now.
    pub(super) fn take(&mut self, thread: usize) -> Option<VertexId> {
        if self.opened.is_none() {
            self.early.push(thread);
        }
        self.opened
    }

    /// Opens the latch at this vertex unless it is open already. Returns the threads that passed earlier in the walk.
    pub(super) fn open(&mut self, vertex: VertexId) -> Vec<usize> {
        self.opened.get_or_insert(vertex);
        std::mem::take(&mut self.early)
    }
}

/// A barrier: the threads that have passed together so far.
#[derive(Debug, Default)]
pub(super) struct Barrier {
    pub(super) met: Vec<usize>,
}
