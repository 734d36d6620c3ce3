//! Read-write locks as the C library makes them by default: a reader gets in whenever no writer holds the lock, also
//! past waiting writers; when a writer leaves, waiting readers go before waiting writers. At locks that prefer writers
//! ([`crate::program::Program::writers_first`]) a reader waits behind waiting writers. Not handed over, as a mutex.
//! When the lock becomes free one waiter is woken; a woken reader that gets in wakes the next waiting reader.

use rustc_hash::FxHashMap;

use super::actor::{Flow, Moment, Stage};
use super::machine::{Machine, Why};
use super::queue::WaitQueue;
use super::simulation::Simulation;
use super::source::Operations;
use crate::program::ObjectId;

#[derive(Debug, Default)]
pub(super) struct ReadWrite {
    pub(super) writer: Option<u32>,
    /// How often each thread holds it for reading.
    pub(super) readers: FxHashMap<u32, u32>,
    /// When the last writer left.
    written: Option<Moment>,
    /// When the last of several readers left; decided by all that left at that instant.
    read: Option<Moment>,
    waiting_readers: WaitQueue,
    waiting_writers: WaitQueue,
}

impl<M: Machine, O: Operations> Simulation<'_, M, O> {
    pub(super) fn read_lock(&mut self, thread: u32, object: ObjectId) -> Flow {
        self.arrive(thread);
        let woken = self.actors[thread as usize].stage == Stage::Again;
        let writers_first = self.prefers_writers(object);
        let lock = self.read_writes.at(object);
        let behind = writers_first && !lock.waiting_writers.is_empty() && !lock.readers.contains_key(&thread);
        if lock.writer.is_some() || behind {
            lock.waiting_readers.push(&mut self.links, thread);
            self.actors[thread as usize].stage = Stage::Again;
            return Flow::Wait(Why::Object(object));
        }
        let held = lock.readers.entry(thread).or_insert(0);
        *held = held.saturating_add(1);
        let written = lock.written;
        if woken && let Some(next) = lock.waiting_readers.pop(&self.links) {
            self.wake_to_retry(next, thread);
        }
        self.note_taken(object);
        self.pass(thread, written)
    }

    pub(super) fn write_lock(&mut self, thread: u32, object: ObjectId) -> Flow {
        self.arrive(thread);
        let lock = self.read_writes.at(object);
        if lock.writer.is_some() || !lock.readers.is_empty() {
            lock.waiting_writers.push(&mut self.links, thread);
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

    pub(super) fn read_write_unlock(&mut self, thread: u32, object: ObjectId) -> Flow {
        let here = self.here(thread);
        let writers_first = self.prefers_writers(object);
        let lock = self.read_writes.at(object);
        if lock.writer == Some(thread) {
            lock.writer = None;
            lock.written = Some(here);
        } else if let Some(held) = lock.readers.get_mut(&thread) {
            *held -= 1;
            if *held == 0 {
                lock.readers.remove(&thread);
            }
            let point = match lock.read {
                Some(read) if read.time == here.time => self.forest.common(read.point, here.point),
                _ => here.point,
            };
            lock.read = Some(Moment { point, ..here });
        } else {
            self.note_not_held(thread, object);
            return self.go_on(thread);
        }
        if lock.writer.is_none() && lock.readers.is_empty() {
            let (first, second) = if writers_first {
                (&mut lock.waiting_writers, &mut lock.waiting_readers)
            } else {
                (&mut lock.waiting_readers, &mut lock.waiting_writers)
            };
            let woken = first.pop(&self.links).or_else(|| second.pop(&self.links));
            if let Some(waiter) = woken {
                self.wake_to_retry(waiter, thread);
            }
        }
        self.note_given_back(object);
        self.go_on(thread)
    }

    fn prefers_writers(&self, object: ObjectId) -> bool {
        let list = &self.program.writers_first;
        !list.is_empty() && list.binary_search(&object).is_ok()
    }
}
