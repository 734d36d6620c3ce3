//! Threads' lives: a created thread starts when it is created; joining waits for its end.

use super::queue::WaitQueue;
use crate::program::ThreadId;
use crate::schedule::actor::{Flow, Moment, Stage};
use crate::schedule::core::Core;
use crate::schedule::machine::{Machine, Why};

pub(in crate::schedule) fn create<M: Machine>(core: &mut Core<'_, M>, thread: u32, other: ThreadId) -> Flow {
    let point = core.actors[thread as usize].point;
    let created = &mut core.actors[other.0 as usize];
    if created.stage == Stage::NotCreated {
        created.stage = Stage::Going;
        created.point = point;
        core.wake(other.0, Some(thread));
    } else {
        core.warnings.created_twice(core.program, thread, core.actors[thread as usize].next, other);
    }
    core.go_on(thread)
}

/// For each thread: the threads that wait for its end.
#[derive(Debug)]
pub(in crate::schedule) struct Joiners(Vec<WaitQueue>);

impl Joiners {
    pub(in crate::schedule) fn new(threads: usize) -> Joiners {
        Joiners(vec![WaitQueue::default(); threads])
    }

    pub(in crate::schedule) fn join<M: Machine>(
        &mut self,
        core: &mut Core<'_, M>,
        thread: u32,
        other: ThreadId,
    ) -> Flow {
        core.arrive(thread);
        let joined = core.actors[other.0 as usize];
        if joined.stage == Stage::Ended {
            return core.pass(thread, Some(Moment { time: joined.since, point: joined.point }));
        }
        self.0[other.0 as usize].push(&mut core.links, thread);
        Flow::Wait(Why::Join)
    }

    pub(in crate::schedule) fn end_thread<M: Machine>(
        &mut self,
        core: &mut Core<'_, M>,
        thread: u32,
    ) -> Flow {
        let here = core.here(thread);
        let actor = &mut core.actors[thread as usize];
        actor.stage = Stage::Ended;
        actor.since = here.time;
        core.backgrounds.note_end(thread);
        while let Some(joiner) = self.0[thread as usize].pop(&core.links) {
            core.grant(joiner, here, thread);
        }
        core.machine.end(thread);
        Flow::Stop
    }
}
