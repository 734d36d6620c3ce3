//! Mutexes as in the C library, without direct hand-over. Unlocking frees the mutex and wakes one waiter, which tries
//! again at the end of the instant's queue. A thread that comes first takes it (barging). Direct hand-over would
//! predict convoys that do not exist.

use super::queue::WaitQueue;
use crate::program::ObjectId;
use crate::schedule::actor::{Flow, Moment, Stage};
use crate::schedule::machine::{Machine, Why};
use crate::schedule::simulation::Simulation;
use crate::schedule::source::Operations;

#[derive(Debug, Default)]
pub(in crate::schedule) struct Mutex {
    pub(in crate::schedule) owner: Option<u32>,
    freed: Option<Moment>,
    waiters: WaitQueue,
}

impl<M: Machine, O: Operations> Simulation<'_, M, O> {
    pub(in crate::schedule) fn lock(&mut self, thread: u32, object: ObjectId) -> Flow {
        self.arrive(thread);
        let mutex = self.mutexes.at(object);
        if mutex.owner.is_some() {
            mutex.waiters.push(&mut self.links, thread);
            let actor = &mut self.actors[thread as usize];
            if actor.stage == Stage::Going {
                actor.stage = Stage::Again;
            }
            return Flow::Wait(Why::Object(object));
        }
        mutex.owner = Some(thread);
        let freed = mutex.freed;
        self.note_taken(object);
        self.pass(thread, freed)
    }

    pub(in crate::schedule) fn unlock(&mut self, thread: u32, object: ObjectId) -> Flow {
        self.free_mutex(thread, object);
        self.go_on(thread)
    }

    /// Frees the mutex if the thread holds it; otherwise records the contradiction.
    pub(super) fn free_mutex(&mut self, thread: u32, object: ObjectId) {
        let here = self.here(thread);
        let mutex = self.mutexes.at(object);
        if mutex.owner != Some(thread) {
            return self.note_not_held(thread, object);
        }
        mutex.owner = None;
        mutex.freed = Some(here);
        if let Some(waiter) = mutex.waiters.pop(&self.links) {
            self.wake_to_retry(waiter, thread);
        }
        self.note_given_back(object);
    }
}
