//! Barriers: the last of `count` threads to arrive releases all; its arrival decides when they continue.

use super::queue::WaitQueue;
use crate::program::ObjectId;
use crate::schedule::actor::{Flow, Moment};
use crate::schedule::machine::{Machine, Why};
use crate::schedule::simulation::Simulation;
use crate::schedule::source::Operations;

#[derive(Debug, Default)]
pub(in crate::schedule) struct Barrier {
    pub(in crate::schedule) arrived: u32,
    /// The last arrival, decided by the common ancestor of all arrivals at that instant.
    last: Option<Moment>,
    waiters: WaitQueue,
}

impl<M: Machine, O: Operations> Simulation<'_, M, O> {
    pub(in crate::schedule) fn meet(&mut self, thread: u32, object: ObjectId, count: u32) -> Flow {
        self.arrive(thread);
        let here = self.here(thread);
        let barrier = self.barriers.at(object);
        let last = match barrier.last {
            Some(last) if last.time == here.time => {
                Moment { point: self.forest.common(last.point, here.point), ..here }
            }
            _ => here,
        };
        barrier.arrived = barrier.arrived.saturating_add(1);
        if barrier.arrived < count {
            barrier.last = Some(last);
            barrier.waiters.push(&mut self.links, thread);
            return Flow::Wait(Why::Object(object));
        }
        barrier.arrived = 0;
        barrier.last = None;
        while let Some(waiter) = self.barriers.at(object).waiters.pop(&self.links) {
            self.actors[waiter as usize].point = last.point;
            self.go_on(waiter);
            self.wake(waiter, Some(thread));
        }
        self.actors[thread as usize].point = last.point;
        self.go_on(thread)
    }
}
