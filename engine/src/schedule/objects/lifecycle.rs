//! Threads' lives: a created thread starts when it is created; joining waits for its end.

use crate::program::ThreadId;
use crate::schedule::actor::{Flow, Moment, Stage};
use crate::schedule::machine::{Machine, Why};
use crate::schedule::simulation::Simulation;
use crate::schedule::source::Operations;

impl<M: Machine, O: Operations> Simulation<'_, M, O> {
    pub(in crate::schedule) fn create(&mut self, thread: u32, other: ThreadId) -> Flow {
        let point = self.actors[thread as usize].point;
        let created = &mut self.actors[other.0 as usize];
        if created.stage == Stage::NotCreated {
            created.stage = Stage::Going;
            created.point = point;
            self.wake(other.0, Some(thread));
        } else {
            self.note_created_twice(thread, other);
        }
        self.go_on(thread)
    }

    pub(in crate::schedule) fn join(&mut self, thread: u32, other: ThreadId) -> Flow {
        self.arrive(thread);
        let joined = self.actors[other.0 as usize];
        if joined.stage == Stage::Ended {
            return self.pass(thread, Some(Moment { time: joined.since, point: joined.point }));
        }
        self.joiners[other.0 as usize].push(&mut self.links, thread);
        Flow::Wait(Why::Join)
    }

    pub(in crate::schedule) fn end_thread(&mut self, thread: u32) -> Flow {
        let here = self.here(thread);
        let actor = &mut self.actors[thread as usize];
        actor.stage = Stage::Ended;
        actor.since = here.time;
        if !self.is_background(thread) {
            self.foreground = self.foreground.saturating_sub(1);
        }
        while let Some(joiner) = self.joiners[thread as usize].pop(&self.links) {
            self.grant(joiner, here, thread);
        }
        self.machine.end(thread);
        Flow::Stop
    }
}
