//! Mutexes as in the C library, without direct hand-over. Unlocking frees the mutex and wakes one waiter, which tries
//! again at the end of the instant's queue. A thread that comes first takes it (barging). Direct hand-over would
//! predict convoys that do not exist.

use super::queue::WaitQueue;
use crate::program::ObjectId;
use crate::schedule::actor::{Flow, Moment, Stage};
use crate::schedule::core::Core;
use crate::schedule::machine::{Machine, Why};

#[derive(Debug, Default)]
pub(in crate::schedule) struct Mutex {
    pub(in crate::schedule) owner: Option<u32>,
    freed: Option<Moment>,
    waiters: WaitQueue,
}

impl Mutex {
    pub(in crate::schedule) fn lock<M: Machine>(
        &mut self,
        core: &mut Core<'_, M>,
        thread: u32,
        object: ObjectId,
    ) -> Flow {
        core.arrive(thread);
        if self.owner.is_some() {
            self.waiters.push(&mut core.links, thread);
            let actor = &mut core.actors[thread as usize];
            if actor.stage == Stage::Going {
                actor.stage = Stage::Again;
            }
            return Flow::Wait(Why::Object(object));
        }
        self.owner = Some(thread);
        let freed = self.freed;
        core.note_taken(object);
        core.pass(thread, freed)
    }

    pub(in crate::schedule) fn unlock<M: Machine>(
        &mut self,
        core: &mut Core<'_, M>,
        thread: u32,
        object: ObjectId,
    ) -> Flow {
        self.free(core, thread, object);
        core.go_on(thread)
    }

    /// Frees the mutex if the thread holds it; otherwise records the contradiction.
    pub(super) fn free<M: Machine>(&mut self, core: &mut Core<'_, M>, thread: u32, object: ObjectId) {
        let here = core.here(thread);
        if self.owner != Some(thread) {
            return core.note_not_held(thread, object);
        }
        self.owner = None;
        self.freed = Some(here);
        if let Some(waiter) = self.waiters.pop(&core.links) {
            core.wake_to_retry(waiter, thread);
        }
        core.note_given_back(object);
    }
}
