//! Read-write locks as in glibc (`nptl/pthread_rwlock_common.c`). A reader gets the lock whenever no writer holds it,
//! even before a waiting writer. Between readers and writers **ownership is passed on directly**: the last reader
//! passes it to the next writer, and a writer to all waiting readers, at that instant, before the woken threads run.
//! Otherwise a thread that reads again at once would keep a woken writer out forever. Ownership does not pass from
//! writer to writer: a waiting writer is woken and tries again. Locks that prefer writers
//! ([`crate::program::Program::writers_first`]) pass from writer to writer first, and a reader waits behind the next
//! writer.

use rustc_hash::FxHashMap;

use super::queue::WaitQueue;
use crate::program::ObjectId;
use crate::schedule::actor::{Flow, Moment, Stage};
use crate::schedule::machine::{Machine, Why};
use crate::schedule::simulation::Simulation;
use crate::schedule::source::Operations;

#[derive(Debug, Default)]
pub(in crate::schedule) struct ReadWrite {
    pub(in crate::schedule) writer: Option<u32>,
    /// Threads that hold the lock for reading, and how many times each holds it.
    pub(in crate::schedule) readers: FxHashMap<u32, u32>,
    /// The writer that the last reader passes the lock to.
    next_writer: Option<u32>,
    /// Moment at which the last writer released the lock.
    written: Option<Moment>,
    /// Moment at which the last reader released the lock. Its point is the common ancestor of all readers that released
    /// the lock at that instant.
    read: Option<Moment>,
    waiting_readers: WaitQueue,
    /// Writers behind the holder or the next writer.
    waiting_writers: WaitQueue,
}

impl ReadWrite {
    fn enter(&mut self, reader: u32) {
        let held = self.readers.entry(reader).or_insert(0);
        *held = held.saturating_add(1);
    }
}

impl<M: Machine, O: Operations> Simulation<'_, M, O> {
    pub(in crate::schedule) fn read_lock(&mut self, thread: u32, object: ObjectId) -> Flow {
        self.arrive(thread);
        let writers_first = self.prefers_writers(object);
        let lock = self.read_writes.at(object);
        let behind = writers_first && lock.next_writer.is_some() && !lock.readers.contains_key(&thread);
        if lock.writer.is_some() || behind {
            lock.waiting_readers.push(&mut self.links, thread);
            return Flow::Wait(Why::Object(object));
        }
        lock.enter(thread);
        let written = lock.written;
        self.note_taken(object);
        self.pass(thread, written)
    }

    pub(in crate::schedule) fn write_lock(&mut self, thread: u32, object: ObjectId) -> Flow {
        self.arrive(thread);
        let lock = self.read_writes.at(object);
        let behind = lock.writer.is_some() || lock.next_writer.is_some();
        if behind || !lock.readers.is_empty() {
            if behind {
                lock.waiting_writers.push(&mut self.links, thread);
            } else {
                lock.next_writer = Some(thread);
            }
            self.actors[thread as usize].stage = Stage::Again;
            return Flow::Wait(Why::Object(object));
        }
        lock.writer = Some(thread);
        let freed = match (lock.written, lock.read) {
            (Some(written), Some(read)) if written.time == read.time => {
                Some(Moment { point: self.forest.common(written.point, read.point), ..read })
            }
            (Some(written), Some(read)) => Some(if written.time > read.time { written } else { read }),
            (written, read) => written.or(read),
        };
        self.note_taken(object);
        self.pass(thread, freed)
    }

    pub(in crate::schedule) fn read_write_unlock(&mut self, thread: u32, object: ObjectId) -> Flow {
        let here = self.here(thread);
        let lock = self.read_writes.at(object);
        let was_writer = lock.writer == Some(thread);
        let mut left = here;
        if was_writer {
            lock.writer = None;
            lock.written = Some(here);
        } else if let Some(held) = lock.readers.get_mut(&thread) {
            *held -= 1;
            if *held == 0 {
                lock.readers.remove(&thread);
            }
            if let Some(read) = lock.read.filter(|read| read.time == here.time) {
                left.point = self.forest.common(read.point, here.point);
            }
            lock.read = Some(left);
        } else {
            self.note_not_held(thread, object);
            return self.go_on(thread);
        }
        self.note_given_back(object);
        // This comes first, since passing on the lock makes another thread pass its own operation.
        let flow = self.go_on(thread);
        if was_writer {
            self.after_writer(thread, object, here);
        } else if let lock = self.read_writes.at(object)
            && lock.readers.is_empty()
            && let Some(next) = lock.next_writer.take()
        {
            self.hand_to_writer(next, object, left, thread);
        }
        flow
    }

    /// After a writer released the lock: passes it on to the next writer, or to all waiting readers and wakes a
    /// writer to try again.
    fn after_writer(&mut self, thread: u32, object: ObjectId, here: Moment) {
        if self.prefers_writers(object)
            && let Some(next) = self.read_writes.at(object).waiting_writers.pop(&self.links)
        {
            return self.hand_to_writer(next, object, here, thread);
        }
        while let Some(reader) = self.read_writes.at(object).waiting_readers.pop(&self.links) {
            self.read_writes.at(object).enter(reader);
            self.note_taken(object);
            self.grant(reader, here, thread);
        }
        if let Some(writer) = self.read_writes.at(object).waiting_writers.pop(&self.links) {
            self.wake_to_retry(writer, thread);
        }
    }

    fn hand_to_writer(&mut self, writer: u32, object: ObjectId, left: Moment, by: u32) {
        self.read_writes.at(object).writer = Some(writer);
        self.note_taken(object);
        self.grant(writer, left, by);
    }

    fn prefers_writers(&self, object: ObjectId) -> bool {
        let list = &self.program.writers_first;
        !list.is_empty() && list.binary_search(&object).is_ok()
    }
}
