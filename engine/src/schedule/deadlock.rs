//! When nothing can happen any more and threads still wait: who waits for what.

use super::actor::Stage;
use super::machine::Machine;
use super::simulation::Simulation;
use super::source::Operations;
use crate::program::{ObjectId, Operation, quoted};
use crate::report::Finding;
use crate::time::Ticks;

/// More waiting threads than this are counted, not named.
const NAMED: usize = 8;

impl<M: Machine, O: Operations> Simulation<'_, M, O> {
    /// Deadlocks and contradictions. To be asked when nothing happens any more.
    pub(super) fn findings(&mut self) -> Vec<Finding> {
        let mut findings = self.oddities.findings();
        findings.extend(self.deadlock());
        findings
    }

    /// The finding, if threads are left waiting.
    fn deadlock(&mut self) -> Option<Finding> {
        let stuck = (0..self.actors.len()).filter(|thread| {
            self.actors[*thread].stage != Stage::Ended && !self.is_background(*thread as u32)
        });
        let stuck: Vec<usize> = stuck.collect();
        let count = stuck.len();
        if count == 0 {
            return None;
        }
        let mut cases: Vec<String> = stuck.into_iter().take(NAMED).map(|thread| self.case(thread)).collect();
        if count > NAMED {
            cases.push(format!("{} more threads wait", count - NAMED));
        }
        let end = Ticks(if M::DECIDES { self.machine.now() } else { self.end.time }).as_ns_f64();
        let who = cases.join("; ");
        let text = format!("nothing more happens after {end} ns (the result is up to there): {who}");
        // What was recorded came to its end.
        Some(match self.program.machine {
            None => Finding { kind: "deadlock".to_owned(), text },
            Some(_) => Finding {
                kind: "deadlock_in_simulation".to_owned(),
                text: format!("{text} (this did not happen in the recording)"),
            },
        })
    }

    fn case(&mut self, thread: usize) -> String {
        let operation = self.source.at(thread as u32, self.actors[thread].next);
        let name = &self.program.threads[thread].name;
        let actor = &self.actors[thread];
        if actor.stage == Stage::NotCreated {
            return format!("{name} is never created");
        }
        let object = |object: ObjectId| quoted(&self.program.objects[object.0 as usize]);
        let held = |owner: Option<u32>| self.held_by(thread, owner);
        let waits_for = match operation {
            Some(Operation::Wait(semaphore)) => format!("a signal {}", object(semaphore)),
            Some(Operation::SemWait(semaphore)) => format!("semaphore {}", object(semaphore)),
            Some(Operation::Lock(mutex)) => self.mutex(thread, mutex),
            Some(Operation::CondWait(_, mutex)) if actor.stage == Stage::Signalled => {
                self.mutex(thread, mutex)
            }
            Some(Operation::CondWait(condition, _)) => format!("condition {}", object(condition)),
            Some(Operation::SpinLock(spin)) => {
                let owner = self.spins.get(spin).and_then(|state| state.owner);
                format!("spin lock {}{}", object(spin), held(owner))
            }
            Some(Operation::ReadLock(lock)) => {
                let writer = self.read_writes.get(lock).and_then(|state| state.writer);
                format!("reading under {}{}", object(lock), held(writer))
            }
            Some(Operation::WriteLock(lock)) => {
                let state = self.read_writes.get(lock);
                let reader = state.and_then(|state| state.readers.keys().min().copied());
                let holder = state.and_then(|state| state.writer).or(reader);
                format!("writing under {}{}", object(lock), held(holder))
            }
            Some(Operation::Barrier(barrier, count)) => {
                let arrived = self.barriers.get(barrier).map_or(0, |state| state.arrived);
                format!("barrier {}, to which {arrived} of {count} have come", object(barrier))
            }
            Some(Operation::Once(once, _)) => format!("once {}", object(once)),
            Some(Operation::Join(other)) if other.0 as usize == thread => "its own end".to_owned(),
            Some(Operation::Join(other)) => {
                format!("the end of {}", self.program.threads[other.0 as usize].name)
            }
            Some(Operation::Await(edge)) => format!("wake-up {}", quoted(&self.program.edge_name(edge))),
            // Nothing else can wait.
            other => format!("{other:?}"),
        };
        format!("{name} waits for {waits_for}")
    }

    fn mutex(&self, thread: usize, mutex: ObjectId) -> String {
        let owner = self.mutexes.get(mutex).and_then(|state| state.owner);
        let name = quoted(&self.program.objects[mutex.0 as usize]);
        format!("lock {name}{}", self.held_by(thread, owner))
    }

    fn held_by(&self, thread: usize, owner: Option<u32>) -> String {
        let Some(owner) = owner.map(|owner| owner as usize) else {
            return String::new();
        };
        let ended = if self.actors[owner].stage == Stage::Ended { ", which has ended" } else { "" };
        if owner == thread {
            ", held by itself".to_owned()
        } else {
            format!(", held by {}{ended}", self.program.threads[owner].name)
        }
    }
}
