//! Barriers: the last of `count` threads to arrive releases all; its arrival decides when they continue.

use super::queue::WaitQueue;
use crate::program::ObjectId;
use crate::schedule::actor::{Flow, Moment};
use crate::schedule::core::Core;
use crate::schedule::machine::{Machine, Why};

#[derive(Debug, Default)]
pub(in crate::schedule) struct Barrier {
    pub(in crate::schedule) arrived: u32,
    /// The last arrival, decided by the common ancestor of all arrivals at that instant.
    last: Option<Moment>,
    waiters: WaitQueue,
}

impl Barrier {
    pub(in crate::schedule) fn meet<M: Machine>(
        &mut self,
        core: &mut Core<'_, M>,
        thread: u32,
        object: ObjectId,
        count: u32,
    ) -> Flow {
        core.arrive(thread);
        let here = core.here(thread);
        let last = match self.last {
            Some(last) if last.time == here.time => {
                Moment { point: core.forest.common(last.point, here.point), ..here }
            }
            _ => here,
        };
        self.arrived = self.arrived.saturating_add(1);
        if self.arrived < count {
            self.last = Some(last);
            self.waiters.push(&mut core.links, thread);
            return Flow::Wait(Why::Object(object));
        }
        self.arrived = 0;
        self.last = None;
        while let Some(waiter) = self.waiters.pop(&core.links) {
            core.actors[waiter as usize].point = last.point;
            core.go_on(waiter);
            core.wake(waiter, Some(thread));
        }
        core.actors[thread as usize].point = last.point;
        core.go_on(thread)
    }
}
