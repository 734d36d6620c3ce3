//! What waking threads costs, in the activity graph: the time until a woken thread acts is an edge, and what its waker
//! computes for it makes that computation longer.

use super::activity::ActivityKind;
use super::build::Builder;
use crate::program::Operation;
use crate::schedule::Delay;
use crate::time::Ticks;

impl Builder<'_> {
    /// A woken thread is on its way.
    pub(super) fn delay(&mut self, delay: &Delay) {
        let (thread, operation) = (delay.thread.0 as usize, delay.operation as usize);
        match delay.by {
            Some((by, number)) => {
                self.reach(by.0 as usize, number as usize);
                self.act_again(by.0 as usize);
                self.walkers[thread].retries =
                    self.walkers[by.0 as usize].at.map(|vertex| (vertex, delay.length));
            }
            None => {
                // What it has done shows only when it, or the thread that let it pass, is looked at.
                self.walkers[thread].comes = Some((operation, delay.length));
                if self.walkers[thread].next < operation && self.is_alone(thread, operation) {
                    self.reach(thread, operation);
                }
                self.come_if_there(thread);
            }
        }
    }

    /// The thread acts, to try its operation again, after it was woken.
    fn act_again(&mut self, thread: usize) {
        if let (Some((from, length)), Some(at)) =
            (self.walkers[thread].retries.take(), self.walkers[thread].at)
        {
            let top = self.walkers[thread].stack.last().copied();
            self.edge(thread, at, ActivityKind::Step, Ticks(0), top);
            self.edge(thread, from, ActivityKind::Delay, length, top);
            self.walkers[thread].at = Some(self.graph.close());
        }
    }

    /// Whether the operation before this one concerns no other thread.
    fn is_alone(&self, thread: usize, operation: usize) -> bool {
        let before = operation.checked_sub(1);
        let before = before.and_then(|before| self.program.threads[thread].operations.get(before));
        before.is_some_and(|before| {
            matches!(
                before,
                Operation::Io(..) | Operation::Sleep(_) | Operation::SleepUntil(_) | Operation::SleepNext(_)
            )
        })
    }

    /// If the thread has been woken to continue from where it is, that takes a while.
    pub(super) fn come_if_there(&mut self, thread: usize) {
        let walker = &self.walkers[thread];
        if let (Some((operation, length)), Some(at)) = (walker.comes, walker.at)
            && walker.next >= operation
        {
            self.walkers[thread].comes = None;
            let top = self.walkers[thread].stack.last().copied();
            self.edge(thread, at, ActivityKind::Delay, length, top);
            self.walkers[thread].at = Some(self.graph.close());
        }
    }

    /// The length of the thread's next operation with what it computes there to wake others.
    pub(super) fn charged(&self, thread: usize, length: Ticks) -> Ticks {
        let charge = self.charges.get(&(thread as u32, self.walkers[thread].next as u32));
        Ticks(length.0.saturating_add(charge.map_or(0, |charge| charge.0)))
    }
}
