//! Read-write locks as in glibc (`nptl/pthread_rwlock_common.c`). A reader gets the lock whenever no writer holds it,
//! even before a waiting writer. Between readers and writers **ownership is passed on directly**: the last reader
//! passes it to the next writer, and a writer to all waiting readers, at that instant, before the woken threads run.
//! Otherwise a thread that reads again at once would keep a woken writer out forever. Ownership does not pass from
//! writer to writer: a waiting writer is woken and tries again. Locks that prefer writers
//! ([`crate::program::Program::writers_first`]) pass from writer to writer first, and a reader waits behind the next
//! writer.

use rustc_hash::FxHashMap;

use super::queue::WaitQueue;
use crate::program::{ObjectId, Program};
use crate::schedule::actor::{Flow, Moment, Stage};
use crate::schedule::core::Core;
use crate::schedule::machine::{Machine, Why};

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

impl ReadWrite {
    pub(in crate::schedule) fn read_lock<M: Machine>(
        &mut self,
        core: &mut Core<'_, M>,
        thread: u32,
        object: ObjectId,
    ) -> Flow {
        core.arrive(thread);
        let writers_first = prefers_writers(core.program, object);
        let behind = writers_first && self.next_writer.is_some() && !self.readers.contains_key(&thread);
        if self.writer.is_some() || behind {
            self.waiting_readers.push(&mut core.links, thread);
            return Flow::Wait(Why::Object(object));
        }
        self.enter(thread);
        let written = self.written;
        core.note_taken(object);
        core.pass(thread, written)
    }

    pub(in crate::schedule) fn write_lock<M: Machine>(
        &mut self,
        core: &mut Core<'_, M>,
        thread: u32,
        object: ObjectId,
    ) -> Flow {
        core.arrive(thread);
        let behind = self.writer.is_some() || self.next_writer.is_some();
        if behind || !self.readers.is_empty() {
            if behind {
                self.waiting_writers.push(&mut core.links, thread);
            } else {
                self.next_writer = Some(thread);
            }
            core.actors[thread as usize].stage = Stage::Again;
            return Flow::Wait(Why::Object(object));
        }
        self.writer = Some(thread);
        let freed = match (self.written, self.read) {
            (Some(written), Some(read)) if written.time == read.time => {
                Some(Moment { point: core.forest.common(written.point, read.point), ..read })
            }
            (Some(written), Some(read)) => Some(if written.time > read.time { written } else { read }),
            (written, read) => written.or(read),
        };
        core.note_taken(object);
        core.pass(thread, freed)
    }

    pub(in crate::schedule) fn unlock<M: Machine>(
        &mut self,
        core: &mut Core<'_, M>,
        thread: u32,
        object: ObjectId,
    ) -> Flow {
        let here = core.here(thread);
        let was_writer = self.writer == Some(thread);
        let mut left = here;
        if was_writer {
            self.writer = None;
            self.written = Some(here);
        } else if let Some(held) = self.readers.get_mut(&thread) {
            *held -= 1;
            if *held == 0 {
                self.readers.remove(&thread);
            }
            if let Some(read) = self.read.filter(|read| read.time == here.time) {
                left.point = core.forest.common(read.point, here.point);
            }
            self.read = Some(left);
        } else {
            core.note_not_held(thread, object);
            return core.go_on(thread);
        }
        core.note_given_back(object);
        // This comes first, since passing on the lock makes another thread pass its own operation.
        let flow = core.go_on(thread);
        if was_writer {
            self.after_writer(core, thread, object, here);
        } else if self.readers.is_empty()
            && let Some(next) = self.next_writer.take()
        {
            self.hand_to_writer(core, next, object, left, thread);
        }
        flow
    }

    /// After a writer released the lock: passes it on to the next writer, or to all waiting readers and wakes a
    /// writer to try again.
    fn after_writer<M: Machine>(
        &mut self,
        core: &mut Core<'_, M>,
        thread: u32,
        object: ObjectId,
        here: Moment,
    ) {
        if prefers_writers(core.program, object)
            && let Some(next) = self.waiting_writers.pop(&core.links)
        {
            return self.hand_to_writer(core, next, object, here, thread);
        }
        while let Some(reader) = self.waiting_readers.pop(&core.links) {
            self.enter(reader);
            core.note_taken(object);
            core.grant(reader, here, thread);
        }
        if let Some(writer) = self.waiting_writers.pop(&core.links) {
            core.wake_to_retry(writer, thread);
        }
    }

    fn hand_to_writer<M: Machine>(
        &mut self,
        core: &mut Core<'_, M>,
        writer: u32,
        object: ObjectId,
        left: Moment,
        by: u32,
    ) {
        self.writer = Some(writer);
        core.note_taken(object);
        core.grant(writer, left, by);
    }
}

fn prefers_writers(program: &Program, object: ObjectId) -> bool {
    let list = &program.writers_first;
    !list.is_empty() && list.binary_search(&object).is_ok()
}
