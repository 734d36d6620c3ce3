//! Counting semaphores: `signal`/`wait` and `sem_post`/`sem_wait`, first come first served.

use std::collections::VecDeque;

use super::queue::WaitQueue;
use crate::program::ObjectId;
use crate::schedule::PointId;
use crate::schedule::actor::{Flow, Moment};
use crate::schedule::core::Core;
use crate::schedule::machine::{Machine, Why};

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

impl Semaphore {
    pub(in crate::schedule) fn post<M: Machine>(&mut self, core: &mut Core<'_, M>, thread: u32) -> Flow {
        self.give(core, thread, 1);
        core.go_on(thread)
    }

    pub(in crate::schedule) fn init<M: Machine>(
        &mut self,
        core: &mut Core<'_, M>,
        thread: u32,
        count: u32,
    ) -> Flow {
        self.old = 0;
        self.fresh.clear();
        self.give(core, thread, count);
        core.go_on(thread)
    }

    pub(in crate::schedule) fn wait<M: Machine>(
        &mut self,
        core: &mut Core<'_, M>,
        thread: u32,
        object: ObjectId,
    ) -> Flow {
        core.arrive(thread);
        match self.take() {
            Some(given) => core.pass(thread, given),
            None => {
                self.waiters.push(&mut core.links, thread);
                Flow::Wait(Why::Object(object))
            }
        }
    }

    fn give<M: Machine>(&mut self, core: &mut Core<'_, M>, thread: u32, mut count: u32) {
        let here = core.here(thread);
        while count > 0 {
            let Some(waiter) = self.waiters.pop(&core.links) else {
                return self.add(here, count);
            };
            core.grant(waiter, here, thread);
            count -= 1;
        }
    }
}
