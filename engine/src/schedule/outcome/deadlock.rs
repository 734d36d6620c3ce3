//! Deadlocks: nothing can happen any more and threads still wait. Says which thread waits for what.

use crate::finding::{Finding, Holder, Stuck, StuckThread, WaitsFor};
use crate::program::{ObjectId, Operation};
use crate::schedule::actor::Stage;
use crate::schedule::machine::Machine;
use crate::schedule::simulation::Simulation;
use crate::schedule::source::Operations;
use crate::time::Ticks;

/// Further waiting threads are counted, not named.
const NAMED: usize = 8;

impl<M: Machine, O: Operations> Simulation<'_, M, O> {
    /// Deadlocks and contradictions; to be called when the run is over.
    pub(in crate::schedule) fn findings(&mut self) -> Vec<Finding> {
        let mut findings = self.core.warnings.findings();
        if self.steps.are_over() {
            // Threads that have not ended are not stuck.
            findings.push(Finding::TooLong { recorded: false });
        } else {
            findings.extend(self.deadlock());
        }
        findings
    }

    /// The finding, if threads still wait.
    fn deadlock(&mut self) -> Option<Finding> {
        let stuck = (0..self.core.actors.len()).filter(|thread| {
            self.core.actors[*thread].stage != Stage::Ended
                && !self.core.backgrounds.is_background(*thread as u32)
        });
        let stuck: Vec<usize> = stuck.collect();
        let count = stuck.len();
        if count == 0 {
            return None;
        }
        let threads = stuck.into_iter().take(NAMED).map(|thread| self.case(thread)).collect();
        let end_ns = Ticks(if M::DECIDES { self.core.machine.now() } else { self.core.end.time }).as_ns_f64();
        let stuck = Stuck { end_ns, threads, more: count.saturating_sub(NAMED) };
        // A recorded program did end, so only the simulation has this deadlock.
        Some(match self.core.program.machine {
            None => Finding::Deadlock { stuck, others_ran: None },
            Some(_) => Finding::DeadlockInSimulation { stuck, cpus: None },
        })
    }

    fn case(&mut self, thread: usize) -> StuckThread {
        let waits_for = self.waits_for(thread);
        StuckThread { thread: self.core.program.threads[thread].name.clone(), waits_for, function: None }
    }

    fn waits_for(&mut self, thread: usize) -> WaitsFor {
        let operation = self.source.at(thread as u32, self.core.actors[thread].next);
        let actor = &self.core.actors[thread];
        if actor.stage == Stage::NotCreated {
            return WaitsFor::Creation;
        }
        let name = |object: ObjectId| self.core.program.objects[object.0 as usize].clone();
        let holder = |owner: Option<u32>| self.holder(thread, owner);
        let lock = |mutex: ObjectId| {
            let owner = self.mutexes.get(mutex).and_then(|state| state.owner);
            WaitsFor::Lock { name: name(mutex), holder: holder(owner) }
        };
        match operation {
            Some(Operation::Wait(semaphore)) => WaitsFor::Signal { name: name(semaphore) },
            Some(Operation::SemWait(semaphore)) => WaitsFor::Semaphore { name: name(semaphore) },
            Some(Operation::Lock(mutex)) => lock(mutex),
            Some(Operation::CondWait(_, mutex)) if actor.stage == Stage::Signalled => lock(mutex),
            Some(Operation::CondWait(condition, _)) => WaitsFor::Condition { name: name(condition) },
            Some(Operation::SpinLock(spin)) => {
                let owner = self.spins.get(spin).and_then(|state| state.owner);
                WaitsFor::SpinLock { name: name(spin), holder: holder(owner) }
            }
            Some(Operation::ReadLock(lock)) => {
                let writer = self.read_writes.get(lock).and_then(|state| state.writer);
                WaitsFor::Reading { name: name(lock), holder: holder(writer) }
            }
            Some(Operation::WriteLock(lock)) => {
                let state = self.read_writes.get(lock);
                let reader = state.and_then(|state| state.readers.keys().min().copied());
                let owner = state.and_then(|state| state.writer).or(reader);
                WaitsFor::Writing { name: name(lock), holder: holder(owner) }
            }
            Some(Operation::Barrier(barrier, of)) => {
                let arrived = self.barriers.get(barrier).map_or(0, |state| state.arrived);
                WaitsFor::Barrier { name: name(barrier), arrived, of }
            }
            Some(Operation::Once(once, _)) => WaitsFor::Once { name: name(once) },
            Some(Operation::Join(other)) if other.0 as usize == thread => WaitsFor::OwnEnd,
            Some(Operation::Join(other)) => {
                WaitsFor::End { thread: self.core.program.threads[other.0 as usize].name.clone() }
            }
            Some(Operation::Await(edge)) => {
                WaitsFor::WakeUp { name: self.core.program.edge_name(edge).into_owned() }
            }
            // Nothing else can wait.
            _ => WaitsFor::NotKnown,
        }
    }

    fn holder(&self, thread: usize, owner: Option<u32>) -> Option<Holder> {
        let owner = owner? as usize;
        Some(Holder {
            thread: self.core.program.threads[owner].name.clone(),
            itself: owner == thread,
            ended: self.core.actors[owner].stage == Stage::Ended,
        })
    }
}
