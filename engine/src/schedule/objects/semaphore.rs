//! Counting semaphores: `signal`/`wait` and `sem_post`/`sem_wait`, first come first served.

use std::collections::VecDeque;

use super::queue::WaitQueue;
use crate::program::{ObjectId, Operation};
use crate::schedule::PointId;
use crate::schedule::actor::{Flow, Moment, Stage};
use crate::schedule::machine::{Machine, Why};
use crate::schedule::simulation::Simulation;
use crate::schedule::source::Operations;

#[derive(Debug, Default)]
pub(in crate::schedule) struct Semaphore {
    /// Counts posted before `fresh_time`: they never delay the thread that takes them.
    old: u64,
    /// Instant of the counts in `fresh`.
    fresh_time: u64,
    /// Counts that were added at that instant, in order, each with its deciding point. A thread that takes one at the
    /// same instant is decided by both points.
    fresh: VecDeque<(PointId, u32)>,
    /// Threads that wait for a count; empty while there is a count.
    waiters: WaitQueue,
}

impl Semaphore {
    fn add(&mut self, from: Moment, count: u32) {
        if self.fresh_time != from.time {
            let aged: u64 = self.fresh.drain(..).map(|(_, count)| u64::from(count)).sum();
            self.old = self.old.saturating_add(aged);
            self.fresh_time = from.time;
        }
        self.fresh.push_back((from.point, count));
    }

    /// Takes the oldest count; `Some(None)` if it was posted earlier and so cannot have delayed the taker.
    fn take(&mut self) -> Option<Option<Moment>> {
        if self.old > 0 {
            self.old -= 1;
            return Some(None);
        }
        let (point, left) = self.fresh.front_mut()?;
        let given = Moment { time: self.fresh_time, point: *point };
        *left -= 1;
        if *left == 0 {
            self.fresh.pop_front();
        }
        Some(Some(given))
    }
}

impl<M: Machine, O: Operations> Simulation<'_, M, O> {
    /// Sets the semaphores that threads without a creator initialize first, before any thread acts. Otherwise an
    /// initialization that comes late would undo a post by another thread.
    pub(in crate::schedule) fn fill_semaphores(&mut self) {
        for thread in 0..self.actors.len() as u32 {
            while self.actors[thread as usize].stage == Stage::Going
                && let Some(Operation::SemInit(object, count)) =
                    self.source.at(thread, self.actors[thread as usize].next)
            {
                self.init_semaphore(thread, object, count);
            }
        }
    }

    pub(in crate::schedule) fn post(&mut self, thread: u32, object: ObjectId) -> Flow {
        self.give(thread, object, 1);
        self.go_on(thread)
    }

    pub(in crate::schedule) fn init_semaphore(&mut self, thread: u32, object: ObjectId, count: u32) -> Flow {
        let semaphore = self.semaphores.at(object);
        semaphore.old = 0;
        semaphore.fresh.clear();
        self.give(thread, object, count);
        self.go_on(thread)
    }

    pub(in crate::schedule) fn wait(&mut self, thread: u32, object: ObjectId) -> Flow {
        self.arrive(thread);
        let semaphore = self.semaphores.at(object);
        match semaphore.take() {
            Some(given) => self.pass(thread, given),
            None => {
                semaphore.waiters.push(&mut self.links, thread);
                Flow::Wait(Why::Object(object))
            }
        }
    }

    fn give(&mut self, thread: u32, object: ObjectId, mut count: u32) {
        let here = self.here(thread);
        while count > 0 {
            let Some(waiter) = self.semaphores.at(object).waiters.pop(&self.links) else {
                return self.semaphores.at(object).add(here, count);
            };
            self.grant(waiter, here, thread);
            count -= 1;
        }
    }
}
