//! Condition variables: waiting frees the mutex. A signal wakes one waiter and a broadcast all; each then competes for
//! the mutex. A signal without a waiter is lost.

use super::queue::WaitQueue;
use crate::program::ObjectId;
use crate::schedule::actor::{Flow, Stage};
use crate::schedule::machine::{Machine, Why};
use crate::schedule::simulation::Simulation;
use crate::schedule::source::Operations;

#[derive(Debug, Default)]
pub(in crate::schedule) struct Condition {
    waiters: WaitQueue,
}

impl<M: Machine, O: Operations> Simulation<'_, M, O> {
    pub(in crate::schedule) fn wait_for_condition(
        &mut self,
        thread: u32,
        object: ObjectId,
        mutex: ObjectId,
    ) -> Flow {
        if self.actors[thread as usize].stage == Stage::Signalled {
            return self.lock(thread, mutex);
        }
        self.arrive(thread);
        self.note_step(thread, true);
        self.free_mutex(thread, mutex);
        self.actors[thread as usize].stage = Stage::Unsignalled;
        self.conditions.at(object).waiters.push(&mut self.links, thread);
        Flow::Wait(Why::Object(object))
    }

    pub(in crate::schedule) fn signal_condition(&mut self, thread: u32, object: ObjectId) -> Flow {
        self.wake_one(thread, object);
        self.go_on(thread)
    }

    pub(in crate::schedule) fn broadcast_condition(&mut self, thread: u32, object: ObjectId) -> Flow {
        while self.wake_one(thread, object) {}
        self.go_on(thread)
    }

    /// Wakes the first waiter; false if there is none.
    fn wake_one(&mut self, thread: u32, object: ObjectId) -> bool {
        let Some(waiter) = self.conditions.at(object).waiters.pop(&self.links) else {
            return false;
        };
        let here = self.here(thread);
        let point = self.decide(&self.actors[waiter as usize], Some(here));
        let actor = &mut self.actors[waiter as usize];
        actor.point = point;
        actor.since = here.time;
        actor.stage = Stage::Signalled;
        self.wake_to_lock(waiter, thread);
        true
    }
}
