//! Synchronization operations that are recorded as by the interposed library. Each takes one grain of CPU time: before its
//! effect for operations that take something, after it for those that give something.

use super::machine::{ActorState, FUTEX_WAIT, FUTEX_WAIT_BITSET, GRAIN_NS, GenerateError, Machine, Outcome};
use super::operations::{grains, word};
use super::trace_emitter::Finished;
use crate::program::{ObjectId, Operation, Program, ThreadId};
use crate::time::Ticks;
use probe_abi::{OperationFlags, SyncOperation as S};
use std::collections::BTreeMap;

/// The operation that a thread is in.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Inside {
    pub(super) began_ns: u64,
    /// Whether the thread had to wait, or woke another one.
    pub(super) held_up: bool,
    /// Whether another thread has granted what this one waits for.
    pub(super) granted: bool,
    /// The thread is the last at a barrier, or runs the body of a `once`.
    pub(super) special: bool,
    /// CPU time in the operation so far.
    pub(super) spent_ns: u64,
}

/// State of the objects other than semaphores, by object.
#[derive(Clone, Debug, Default)]
pub(super) struct Shared {
    owner: Option<usize>,
    readers: Vec<usize>,
    waiters: Vec<usize>,
    came: Vec<usize>,
    ran: Option<bool>,
    /// Threads that wait for the object as for a condition.
    waiting: Vec<usize>,
}

/// Stages of taking a semaphore by a condition variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// The thread holds the mutex and tests whether it must wait; that takes one grain.
    Looks,
    /// The test is over.
    Looked,
    /// The thread waits to be signalled.
    Waits,
    /// The thread has been signalled and takes the mutex again.
    Returns,
}

/// A spinning thread is recognized by CPU time of more than this many times a release's.
const SPAN: u64 = 4;

impl Machine<'_> {
    /// Executes a synchronization operation; `None` if it is not one.
    pub(super) fn recorded(
        &mut self,
        cpu: usize,
        thread: usize,
        operation: Operation,
    ) -> Option<Result<Outcome, GenerateError>> {
        if let Operation::SemWait(condition) = operation
            && let Some(mutex) = self.mutex_of(condition)
        {
            return Some(self.consume(cpu, thread, condition, mutex));
        }
        Some(match operation {
            Operation::SemPost(condition) if self.mutex_of(condition).is_some() => {
                self.give(cpu, thread, condition, S::ConditionSignal, operation)
            }
            Operation::SemInit(condition, count) if self.mutex_of(condition).is_some() => {
                self.semaphores[condition.0 as usize].count = u64::from(count);
                self.expected_run.first.push(operation);
                Ok(Outcome::GoesOn)
            }
            Operation::Lock(object) => self.take(cpu, thread, object, S::MutexLock, operation),
            Operation::ReadLock(object) => self.take(cpu, thread, object, S::RwLockRead, operation),
            Operation::WriteLock(object) => self.take(cpu, thread, object, S::RwLockWrite, operation),
            Operation::SpinLock(object) => self.take(cpu, thread, object, S::SpinLock, operation),
            Operation::Wait(object) | Operation::SemWait(object) => {
                let operation = Operation::SemWait(object);
                self.take(cpu, thread, object, S::SemaphoreWait, operation)
            }
            Operation::Barrier(object, _) => self.take(cpu, thread, object, S::BarrierWait, operation),
            // Only a recorded creation shows the thread's handle.
            Operation::Join(other) if self.created[other.0 as usize] => self.join(cpu, thread, other),
            Operation::Unlock(object) => self.give(cpu, thread, object, S::MutexUnlock, operation),
            Operation::ReadWriteUnlock(object) => self.give(cpu, thread, object, S::RwLockUnlock, operation),
            Operation::SpinUnlock(object) => self.give(cpu, thread, object, S::SpinUnlock, operation),
            Operation::Signal(object) | Operation::SemPost(object) => {
                self.give(cpu, thread, object, S::SemaphorePost, Operation::SemPost(object))
            }
            Operation::SemInit(object, count) => {
                if self.actors[thread].inside.is_none() {
                    self.semaphores[object.0 as usize].count = u64::from(count);
                    self.expected_run.first.push(operation);
                }
                self.give(cpu, thread, object, S::SemaphoreInit, operation)
            }
            Operation::Create(other) => self.create_recorded(cpu, thread, other),
            Operation::Once(object, length) => self.once(cpu, thread, object, length),
            _ => return None,
        })
    }

    /// The thread computes inside the operation for this length, then reaches the operation again.
    fn goes_on_inside(&mut self, thread: usize, length_ns: u64) -> Result<Outcome, GenerateError> {
        let actor = &mut self.actors[thread];
        actor.left_ns = length_ns;
        actor.next -= 1;
        if let Some(call) = &mut actor.inside {
            call.spent_ns += length_ns;
        }
        Ok(Outcome::Computes)
    }

    fn enter(&mut self, cpu: usize, thread: usize, held_up: bool) -> Result<Outcome, GenerateError> {
        let began_ns = self.stamp(cpu);
        self.actors[thread].inside = Some(Inside { began_ns, held_up, ..Inside::default() });
        self.goes_on_inside(thread, GRAIN_NS)
    }

    fn leave(&mut self, cpu: usize, thread: usize, mut finished: Finished) {
        let Some(call) = self.actors[thread].inside.take() else { return };
        if call.held_up && finished.operation == S::MutexLock {
            finished.flags |= OperationFlags::CONTENDED;
        }
        let tid = self.actors[thread].tid;
        let place = self.place(cpu, probe_abi::Context::Task);
        self.emitter.operation(place.time_ns, thread, tid, call.began_ns, &finished);
    }

    fn take(
        &mut self,
        cpu: usize,
        thread: usize,
        object: ObjectId,
        kind: S,
        operation: Operation,
    ) -> Result<Outcome, GenerateError> {
        let place = object.0 as usize;
        let Some(call) = self.actors[thread].inside else {
            let held_up = kind == S::MutexLock && self.shared[place].owner.is_some();
            return self.enter(cpu, thread, held_up);
        };
        let shared = &mut self.shared[place];
        let free = match kind {
            _ if call.granted => true,
            S::SemaphoreWait => {
                let semaphore = &mut self.semaphores[place];
                let has = semaphore.count > 0;
                semaphore.count -= u64::from(has);
                has
            }
            S::BarrierWait => self.meet(cpu, thread, operation),
            S::RwLockRead => shared.owner.is_none(),
            S::RwLockWrite => shared.owner.is_none() && shared.readers.is_empty(),
            _ => shared.owner.is_none(),
        };
        if !free && kind == S::SpinLock {
            return self.goes_on_inside(thread, GRAIN_NS);
        }
        if !free {
            if let Some(call) = &mut self.actors[thread].inside {
                call.held_up = true;
            }
            match kind {
                S::SemaphoreWait => self.semaphores[place].waiters.push_back(thread),
                S::BarrierWait => {}
                _ => self.shared[place].waiters.push(thread),
            }
            self.actors[thread].next -= 1;
            self.wait_for_futex(cpu, thread, word(object.0), FUTEX_WAIT)?;
            return Ok(Outcome::Left);
        }
        match kind {
            S::RwLockRead => self.shared[place].readers.push(thread),
            S::SemaphoreWait | S::BarrierWait => {}
            _ => self.shared[place].owner = Some(thread),
        }
        let Some(call) = self.actors[thread].inside else { return Ok(Outcome::GoesOn) };
        let held_up = call.held_up || (kind == S::SpinLock && call.spent_ns > SPAN * GRAIN_NS);
        if !held_up {
            self.expected_run.work(thread, call.spent_ns);
        }
        let mut finished = Finished::of(kind, word(object.0));
        finished.caller = 0x20_000 + u64::from(object.0);
        if let Some(condition) = self.actors[thread].consumes {
            self.expected_run.operation(thread, Operation::SemWait(condition));
            finished.caller = 0x10_000 + u64::from(condition.0);
        }
        self.expected_run.operation(thread, operation);
        if call.special {
            finished.outcome = -1;
        }
        self.leave(cpu, thread, finished);
        Ok(Outcome::GoesOn)
    }

    /// The thread arrives at a barrier; returns whether it was the last.
    fn meet(&mut self, cpu: usize, thread: usize, operation: Operation) -> bool {
        let Operation::Barrier(object, count) = operation else { return true };
        let shared = &mut self.shared[object.0 as usize];
        if shared.came.len() + 1 < count as usize {
            shared.came.push(thread);
            return false;
        }
        let came = std::mem::take(&mut shared.came);
        if let Some(call) = &mut self.actors[thread].inside {
            call.special = true;
            call.held_up |= !came.is_empty();
        }
        self.grant(cpu, came);
        true
    }

    fn grant(&mut self, cpu: usize, waiters: Vec<usize>) {
        for waiter in waiters {
            if let Some(call) = &mut self.actors[waiter].inside {
                call.granted = true;
            }
            self.wake_without_edge(cpu, waiter);
        }
    }

    fn give(
        &mut self,
        cpu: usize,
        thread: usize,
        object: ObjectId,
        kind: S,
        operation: Operation,
    ) -> Result<Outcome, GenerateError> {
        let place = object.0 as usize;
        if let Some(call) = self.actors[thread].inside {
            if !call.held_up {
                self.expected_run.work(thread, GRAIN_NS);
            }
            let mut finished = Finished::of(kind, word(object.0));
            if let Operation::SemInit(_, count) = operation {
                finished.second = u64::from(count);
            }
            self.leave(cpu, thread, finished);
            return Ok(Outcome::GoesOn);
        }
        if kind != S::SemaphoreInit {
            self.expected_run.operation(thread, operation);
        }
        let shared = &mut self.shared[place];
        let mut woken = Vec::new();
        // A condition signals the first waiter, asleep or not.
        match kind {
            S::SemaphoreInit => {}
            S::ConditionSignal => {
                self.semaphores[place].count += 1;
                if !shared.waiting.is_empty() {
                    let waiter = shared.waiting.remove(0);
                    if let Some(call) = &mut self.actors[waiter].inside {
                        call.granted = true;
                    }
                    // A signalled thread that is not asleep yet will not sleep.
                    if self.actors[waiter].state == ActorState::Asleep {
                        woken.push(waiter);
                    }
                }
            }
            S::SemaphorePost => match self.semaphores[place].waiters.pop_front() {
                None => self.semaphores[place].count += 1,
                Some(waiter) => {
                    if let Some(call) = &mut self.actors[waiter].inside {
                        call.granted = true;
                    }
                    woken.push(waiter);
                }
            },
            S::RwLockUnlock => {
                if shared.owner == Some(thread) {
                    shared.owner = None;
                } else if let Some(reader) = shared.readers.iter().position(|reader| *reader == thread) {
                    shared.readers.swap_remove(reader);
                }
                if shared.owner.is_none() && shared.readers.is_empty() {
                    woken = std::mem::take(&mut shared.waiters);
                }
            }
            S::SpinUnlock => shared.owner = None,
            _ => {
                shared.owner = None;
                if !shared.waiters.is_empty() {
                    woken.push(shared.waiters.remove(0));
                }
            }
        }
        let held_up = !woken.is_empty();
        let outcome = self.enter(cpu, thread, held_up);
        woken.into_iter().for_each(|waiter| self.wake_without_edge(cpu, waiter));
        outcome
    }

    /// The mutex of a semaphore that is made of a condition variable: the one that is locked right after it is taken.
    fn mutex_of(&self, semaphore: ObjectId) -> Option<ObjectId> {
        self.hand_made.get(&semaphore).copied()
    }

    /// Takes a count under the mutex, and waits on the condition while there is none, as programs do.
    fn consume(
        &mut self,
        cpu: usize,
        thread: usize,
        condition: ObjectId,
        mutex: ObjectId,
    ) -> Result<Outcome, GenerateError> {
        let place = mutex.0 as usize;
        loop {
            match self.actors[thread].way {
                None => {
                    self.actors[thread].consumes = Some(condition);
                    let outcome = self.take(cpu, thread, mutex, S::MutexLock, Operation::Lock(mutex))?;
                    if !matches!(outcome, Outcome::GoesOn) {
                        return Ok(outcome);
                    }
                    self.actors[thread].consumes = None;
                    self.actors[thread].way = Some(Way::Looks);
                }
                Some(Way::Looks) => {
                    self.actors[thread].way = Some(Way::Looked);
                    self.actors[thread].left_ns = GRAIN_NS;
                    self.actors[thread].next -= 1;
                    return Ok(Outcome::Computes);
                }
                Some(Way::Looked) => {
                    let semaphore = &mut self.semaphores[condition.0 as usize];
                    if semaphore.count > 0 {
                        semaphore.count -= 1;
                        self.actors[thread].way = None;
                        // The mutex is held: skips the lock operation that follows.
                        self.actors[thread].next += 1;
                        return Ok(Outcome::GoesOn);
                    }
                    self.actors[thread].way = Some(Way::Waits);
                    let shared = &mut self.shared[place];
                    shared.owner = None;
                    let woken = (!shared.waiters.is_empty()).then(|| shared.waiters.remove(0));
                    self.shared[condition.0 as usize].waiting.push(thread);
                    let outcome = self.enter(cpu, thread, true);
                    woken.into_iter().for_each(|waiter| self.wake_without_edge(cpu, waiter));
                    return outcome;
                }
                Some(Way::Waits) => {
                    if !self.actors[thread].inside.is_some_and(|call| call.granted) {
                        self.actors[thread].next -= 1;
                        self.wait_for_futex(cpu, thread, word(condition.0), FUTEX_WAIT)?;
                        return Ok(Outcome::Left);
                    }
                    self.actors[thread].way = Some(Way::Returns);
                }
                Some(Way::Returns) => {
                    if self.shared[place].owner.is_some() {
                        self.shared[place].waiters.push(thread);
                        self.actors[thread].next -= 1;
                        self.wait_for_futex(cpu, thread, word(mutex.0), FUTEX_WAIT)?;
                        return Ok(Outcome::Left);
                    }
                    self.shared[place].owner = Some(thread);
                    let mut finished = Finished::of(S::ConditionWait, word(condition.0));
                    finished.second = word(mutex.0);
                    finished.caller = 0x50_000 + u64::from(condition.0);
                    self.leave(cpu, thread, finished);
                    self.actors[thread].way = Some(Way::Looks);
                }
            }
        }
    }

    fn join(&mut self, cpu: usize, thread: usize, other: ThreadId) -> Result<Outcome, GenerateError> {
        let child = other.0 as usize;
        let Some(call) = self.actors[thread].inside else { return self.enter(cpu, thread, false) };
        if self.actors[child].state != ActorState::Ended {
            if let Some(call) = &mut self.actors[thread].inside {
                call.held_up = true;
            }
            self.actors[child].joiners.push(thread);
            self.actors[thread].next -= 1;
            self.wait_for_futex(cpu, thread, word(1 << 20 | other.0), FUTEX_WAIT_BITSET)?;
            return Ok(Outcome::Left);
        }
        if !call.held_up {
            self.expected_run.work(thread, GRAIN_NS);
        }
        self.expected_run.operation(thread, Operation::Join(other));
        self.leave(cpu, thread, Finished::of(S::ThreadJoin, pthread(other)));
        Ok(Outcome::GoesOn)
    }

    fn create_recorded(
        &mut self,
        cpu: usize,
        thread: usize,
        other: ThreadId,
    ) -> Result<Outcome, GenerateError> {
        if self.actors[thread].inside.is_some() {
            self.expected_run.work(thread, GRAIN_NS);
            self.leave(cpu, thread, Finished::of(S::ThreadCreate, pthread(other)));
            return Ok(Outcome::GoesOn);
        }
        let outcome = self.enter(cpu, thread, false);
        self.create(cpu, thread, other.0 as usize);
        outcome
    }

    fn once(
        &mut self,
        cpu: usize,
        thread: usize,
        object: ObjectId,
        length: Ticks,
    ) -> Result<Outcome, GenerateError> {
        let place = object.0 as usize;
        let Some(call) = self.actors[thread].inside else { return self.enter(cpu, thread, false) };
        let mut finished = Finished::of(S::Once, word(object.0));
        match self.shared[place].ran {
            None => {
                self.shared[place].ran = Some(false);
                if let Some(call) = &mut self.actors[thread].inside {
                    call.special = true;
                }
                return self.goes_on_inside(thread, grains(length).max(GRAIN_NS));
            }
            Some(false) if call.special => {
                self.shared[place].ran = Some(true);
                finished.flags = OperationFlags::RAN;
                self.expected_run.once(object, call.spent_ns);
                self.expected_run.operation(thread, Operation::Once(object, Ticks(0)));
                let waiters = std::mem::take(&mut self.shared[place].waiters);
                waiters.into_iter().for_each(|waiter| self.wake_without_edge(cpu, waiter));
            }
            Some(false) => {
                if let Some(call) = &mut self.actors[thread].inside {
                    call.held_up = true;
                }
                self.shared[place].waiters.push(thread);
                self.actors[thread].next -= 1;
                self.wait_for_futex(cpu, thread, word(object.0), FUTEX_WAIT)?;
                return Ok(Outcome::Left);
            }
            Some(true) => {
                if !call.held_up {
                    self.expected_run.work(thread, call.spent_ns);
                }
                self.expected_run.operation(thread, Operation::Once(object, Ticks(0)));
            }
        }
        self.leave(cpu, thread, finished);
        Ok(Outcome::GoesOn)
    }

    /// Wakes the thread that joins the ending one.
    pub(super) fn wake_joiner(&mut self, cpu: usize, thread: usize, joiner: usize) {
        if self.actors[joiner].inside.is_none() {
            return self.wake(cpu, thread, joiner);
        }
        self.wake_without_edge(cpu, joiner);
    }
}

/// Semaphores that are taken right before a mutex is locked, with that mutex.
pub(super) fn hand_made(program: &Program) -> BTreeMap<ObjectId, ObjectId> {
    let lists = program.threads.iter().map(|thread| thread.operations.windows(2));
    let pairs = lists.flatten().filter_map(|pair| match pair {
        [Operation::SemWait(semaphore), Operation::Lock(mutex)] => Some((*semaphore, *mutex)),
        _ => None,
    });
    pairs.collect()
}

fn pthread(thread: ThreadId) -> u64 {
    0x7e00_0000_0000 + 4096 * u64::from(thread.0)
}
