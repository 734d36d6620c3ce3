//! Spin locks: like a mutex, but who waits keeps a processor busy.

use super::actor::{Flow, Moment, Stage};
use super::queue::WaitQueue;
use super::simulation::Simulation;
use crate::program::ObjectId;

#[derive(Debug, Default)]
pub(super) struct Spin {
    pub(super) owner: Option<u32>,
    freed: Option<Moment>,
    spinning: WaitQueue,
}

impl Simulation<'_> {
    pub(super) fn spin_lock(&mut self, thread: u32, object: ObjectId) -> Flow {
        self.arrive(thread);
        // Also a thread that gets the lock at once spins, for no time: if its arrival alone came earlier, it would spin
        // until the lock is freed.
        if self.actors[thread as usize].stage == Stage::Going {
            self.vertex(thread, 1);
        }
        let spin = self.spins.at(object);
        if spin.owner.is_some() {
            spin.spinning.push(&mut self.links, thread);
            self.actors[thread as usize].stage = Stage::Again;
            return Flow::Stop;
        }
        spin.owner = Some(thread);
        let freed = spin.freed;
        let flow = self.pass(thread, freed);
        self.vertex(thread, -1);
        flow
    }

    pub(super) fn spin_unlock(&mut self, thread: u32, object: ObjectId) -> Flow {
        let here = self.here(thread);
        let spin = self.spins.at(object);
        if spin.owner == Some(thread) {
            spin.owner = None;
            spin.freed = Some(here);
            if let Some(waiter) = spin.spinning.pop(&self.links) {
                self.agenda.soon(waiter);
            }
        } else {
            self.note_not_held(thread, object);
        }
        self.go_on(thread)
    }
}
