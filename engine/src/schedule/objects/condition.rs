//! Condition variables: waiting frees the mutex. A signal wakes one waiter and a broadcast all; each then competes for
//! the mutex. A signal without a waiter is lost.

use super::mutex::Mutex;
use super::queue::WaitQueue;
use crate::program::ObjectId;
use crate::schedule::actor::{Flow, Stage};
use crate::schedule::core::Core;
use crate::schedule::machine::{Machine, Why};

#[derive(Debug, Default)]
pub(in crate::schedule) struct Condition {
    waiters: WaitQueue,
}

impl Condition {
    pub(in crate::schedule) fn wait<M: Machine>(
        &mut self,
        core: &mut Core<'_, M>,
        thread: u32,
        object: ObjectId,
        lock: &mut Mutex,
        mutex: ObjectId,
    ) -> Flow {
        if core.actors[thread as usize].stage == Stage::Signalled {
            return lock.lock(core, thread, mutex);
        }
        core.arrive(thread);
        core.note_step(thread, true);
        lock.free(core, thread, mutex);
        core.actors[thread as usize].stage = Stage::Unsignalled;
        self.waiters.push(&mut core.links, thread);
        Flow::Wait(Why::Object(object))
    }

    pub(in crate::schedule) fn signal<M: Machine>(&mut self, core: &mut Core<'_, M>, thread: u32) -> Flow {
        self.wake_one(core, thread);
        core.go_on(thread)
    }

    pub(in crate::schedule) fn broadcast<M: Machine>(&mut self, core: &mut Core<'_, M>, thread: u32) -> Flow {
        while self.wake_one(core, thread) {}
        core.go_on(thread)
    }

    /// Wakes the first waiter; false if there is none.
    fn wake_one<M: Machine>(&mut self, core: &mut Core<'_, M>, thread: u32) -> bool {
        let Some(waiter) = self.waiters.pop(&core.links) else {
            return false;
        };
        let here = core.here(thread);
        let point = core.decide(&core.actors[waiter as usize], Some(here));
        let actor = &mut core.actors[waiter as usize];
        actor.point = point;
        actor.since = here.time;
        actor.stage = Stage::Signalled;
        core.wake_to_lock(waiter, thread);
        true
    }
}
