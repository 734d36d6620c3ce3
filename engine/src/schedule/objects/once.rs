//! `once`: the first thread to arrive computes, the others wait until it has finished.

use super::queue::WaitQueue;
use crate::program::ObjectId;
use crate::schedule::actor::{Flow, Moment, Stage};
use crate::schedule::machine::{Machine, Why};
use crate::schedule::simulation::Simulation;
use crate::schedule::source::Operations;
use crate::time::Ticks;

#[derive(Debug, Default)]
pub(in crate::schedule) struct OnceCell {
    begun: bool,
    done: Option<Moment>,
    waiters: WaitQueue,
}

impl<M: Machine, O: Operations> Simulation<'_, M, O> {
    pub(in crate::schedule) fn once(&mut self, thread: u32, object: ObjectId, length: Ticks) -> Flow {
        if self.actors[thread as usize].stage == Stage::InOnce {
            return self.end_once(thread, object);
        }
        self.arrive(thread);
        let cell = self.onces.at(object);
        if !std::mem::replace(&mut cell.begun, true) {
            self.actors[thread as usize].stage = Stage::InOnce;
            self.begin_run(thread);
            self.take_time(thread, length);
            return Flow::Stop;
        }
        let done = cell.done;
        if done.is_none() {
            cell.waiters.push(&mut self.links, thread);
        }
        self.skip_run(thread);
        if done.is_some() { self.pass(thread, done) } else { Flow::Wait(Why::Object(object)) }
    }

    fn end_once(&mut self, thread: u32, object: ObjectId) -> Flow {
        self.end_run(thread);
        let here = self.here(thread);
        self.onces.at(object).done = Some(here);
        while let Some(waiter) = self.onces.at(object).waiters.pop(&self.links) {
            self.grant(waiter, here, thread);
        }
        self.go_on(thread)
    }
}
