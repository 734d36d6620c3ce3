//! `once`: the first thread to arrive computes, the others wait until it has finished.

use super::queue::WaitQueue;
use crate::program::ObjectId;
use crate::schedule::actor::{Flow, Moment, Stage};
use crate::schedule::core::Core;
use crate::schedule::machine::{Machine, Why};
use crate::time::Ticks;

#[derive(Debug, Default)]
pub(in crate::schedule) struct OnceCell {
    begun: bool,
    done: Option<Moment>,
    waiters: WaitQueue,
}

impl OnceCell {
    pub(in crate::schedule) fn once<M: Machine>(
        &mut self,
        core: &mut Core<'_, M>,
        thread: u32,
        object: ObjectId,
        length: Ticks,
    ) -> Flow {
        if core.actors[thread as usize].stage == Stage::InOnce {
            return self.end_once(core, thread);
        }
        core.arrive(thread);
        if !std::mem::replace(&mut self.begun, true) {
            core.actors[thread as usize].stage = Stage::InOnce;
            core.begin_run(thread);
            core.take_time(thread, length);
            return Flow::Stop;
        }
        let done = self.done;
        if done.is_none() {
            self.waiters.push(&mut core.links, thread);
        }
        core.skip_run(thread);
        if done.is_some() { core.pass(thread, done) } else { Flow::Wait(Why::Object(object)) }
    }

    fn end_once<M: Machine>(&mut self, core: &mut Core<'_, M>, thread: u32) -> Flow {
        core.end_run(thread);
        let here = core.here(thread);
        self.done = Some(here);
        while let Some(waiter) = self.waiters.pop(&core.links) {
            core.grant(waiter, here, thread);
        }
        core.go_on(thread)
    }
}
