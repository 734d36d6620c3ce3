//! Costs of waking threads in the activity graph. The latency until a woken thread acts is an edge; the waker's cost makes
//! its computation longer.

use super::activity::ActivityKind;
use super::build::Builder;
use crate::program::Operation;
use crate::schedule::Delay;
use crate::time::Ticks;

impl Builder<'_> {
    /// Adds the latency of a woken thread.
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
                // Steps before this operation may come later in the walk, or together with the thread that lets this
                // one pass.
                self.walkers[thread].comes = Some((operation, delay.length));
                if self.walkers[thread].next < operation && self.is_alone(thread, operation) {
                    self.reach(thread, operation);
                }
                self.come_if_there(thread);
            }
        }
    }

    /// Adds the vertex of a further attempt if the thread was woken to try its operation again.
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

    /// Whether the preceding operation of the thread concerns no other thread.
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

    /// Adds the latency of a woken thread once the walk has reached the operation with which the thread continues.
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

    /// The length of the thread's next operation, with the cost of waking others there.
    pub(super) fn charged(&self, thread: usize, length: Ticks) -> Ticks {
        let charge = self.charges.get(&(thread as u32, self.walkers[thread].next as u32));
        Ticks(length.0.saturating_add(charge.map_or(0, |charge| charge.0)))
    }
}
