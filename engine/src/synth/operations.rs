//! Executes each operation on the generator's machine, and writes its records.

use super::expected::Doing;
use super::machine::{
    ActorState, DEAD, Event, FUTEX_WAIT, FUTEX_WAIT_BITSET, GRAIN_NS, GenerateError, IN_DEVICE, Machine,
    Outcome, SLEEPING, stack_base,
};
use crate::event::FUTEX_CALL;
use crate::program::{ObjectId, Operation};
use crate::time::Ticks;
use probe_abi::{Call, Context};

impl Machine<'_> {
    pub(super) fn operation(
        &mut self,
        cpu: usize,
        thread: usize,
        operation: Operation,
    ) -> Result<Outcome, GenerateError> {
        if self.execution.operations
            && let Some(outcome) = self.recorded(cpu, thread, operation)
        {
            return outcome;
        }
        match operation {
            Operation::Exec(length) => {
                self.actors[thread].left_ns = grains(length);
                return Ok(Outcome::Computes);
            }
            Operation::ExecIn(function, length) => {
                self.call(cpu, thread, function.0);
                self.actors[thread].left_ns = grains(length);
                self.actors[thread].returns = true;
                return Ok(Outcome::Computes);
            }
            Operation::Call(function) => self.call(cpu, thread, function.0),
            Operation::Return => self.return_from(cpu, thread),
            Operation::Signal(object) | Operation::SemPost(object) => self.post(cpu, thread, object),
            Operation::Wait(object) | Operation::SemWait(object) => {
                let semaphore = &mut self.semaphores[object.0 as usize];
                if semaphore.count == 0 {
                    semaphore.waiters.push_back(thread);
                    return self
                        .wait_for_futex(cpu, thread, word(object.0), FUTEX_WAIT)
                        .map(|()| Outcome::Left);
                }
                semaphore.count -= 1;
            }
            Operation::Create(other) => self.create(cpu, thread, other.0 as usize),
            Operation::Join(other) => {
                let other = other.0 as usize;
                if self.actors[other].state != ActorState::Ended {
                    self.actors[other].joiners.push(thread);
                    return self
                        .wait_for_futex(cpu, thread, word(1 << 20 | other as u32), FUTEX_WAIT_BITSET)
                        .map(|()| Outcome::Left);
                }
            }
            Operation::Io(_, length) | Operation::Sleep(length) if grains(length) == 0 => {}
            Operation::Io(_, length) => {
                self.plan(grains(length), cpu as i32, Event::Timer(thread));
                self.expected_run.io(thread, grains(length));
                return self.sleep(cpu, thread, IN_DEVICE).map(|()| Outcome::Left);
            }
            Operation::Sleep(length) => {
                self.plan(grains(length), cpu as i32, Event::Timer(thread));
                self.expected_run.sleep(thread, grains(length));
                // Each sleep uses a word of its own: repeated waits for the same word would count as one wait that
                // polls.
                let word = word(1 << 21 | (self.now / GRAIN_NS) as u32 & 0xf_ffff);
                return self.wait_for_futex(cpu, thread, word, FUTEX_WAIT).map(|()| Outcome::Left);
            }
            Operation::Release(edge) => {
                let (released, waiter) = &mut self.edges[edge.0 as usize];
                *released = true;
                for waiter in std::mem::take(waiter) {
                    self.wake(cpu, thread, waiter);
                }
            }
            Operation::Await(edge) => {
                let (released, waiter) = &mut self.edges[edge.0 as usize];
                if !*released {
                    waiter.push(thread);
                    return self.sleep(cpu, thread, SLEEPING).map(|()| Outcome::Left);
                }
            }
            other => return Err(GenerateError::Unsupported(other)),
        }
        Ok(Outcome::GoesOn)
    }

    /// Posts a semaphore: the thread that has waited longest gets the count, if there is one.
    fn post(&mut self, cpu: usize, thread: usize, object: ObjectId) {
        let semaphore = &mut self.semaphores[object.0 as usize];
        match semaphore.waiters.pop_front() {
            None => semaphore.count += 1,
            Some(waiter) => self.wake(cpu, thread, waiter),
        }
    }

    pub(super) fn call(&mut self, cpu: usize, thread: usize, function: u32) {
        let actor = &self.actors[thread];
        let top = actor.stack.last().map_or(stack_base(actor.tid), |(_, sp, _)| *sp);
        let sp = top - 48 - 16 * u64::from(function % 8);
        let outermost = actor.stack.iter().all(|(open, ..)| *open != function);
        let recorded = outermost || !self.execution.fold_recursion;
        self.actors[thread].stack.push((function, sp, recorded));
        self.expected_run.call(thread, function, outermost);
        if recorded {
            let place = self.place(cpu, Context::Task);
            self.emitter.function_enter(place, function, sp);
        }
    }

    pub(super) fn return_from(&mut self, cpu: usize, thread: usize) {
        let Some((function, sp, recorded)) = self.actors[thread].stack.pop() else { return };
        let outermost = self.actors[thread].stack.iter().all(|(open, ..)| *open != function);
        self.expected_run.ret(thread, outermost);
        if recorded {
            let place = self.place(cpu, Context::Task);
            self.emitter.function_exit(place, function, sp);
        }
    }

    pub(super) fn create(&mut self, cpu: usize, thread: usize, other: usize) {
        if self.actors[other].state != ActorState::NotCreated {
            return;
        }
        self.actors[other].state = ActorState::Queued;
        let tid = self.actors[other].tid;
        let place = self.place(cpu, Context::Task);
        self.emitter.fork(place, tid, &self.program.threads[other].name);
        self.emitter.waking(place, tid, 0, true, Call::NONE);
        self.expected_run.starts(other, tid, place.time_ns, false);
        self.expected_run.create(thread, other);
        self.plan(self.latency(), -1, Event::Ready(other));
    }

    pub(super) fn end(&mut self, cpu: usize, thread: usize) -> Result<(), GenerateError> {
        let place = self.place(cpu, Context::Task);
        // Newer kernels report the exit before the joiner is woken, older kernels after that.
        let exit_first = self.numbers.below(2) == 0;
        if exit_first {
            self.emitter.exit(place, false);
        }
        for joiner in std::mem::take(&mut self.actors[thread].joiners) {
            self.wake_joiner(cpu, thread, joiner);
        }
        if !exit_first {
            self.emitter.exit(place, false);
        }
        self.actors[thread].state = ActorState::Ended;
        self.expected_run.does(thread, place.time_ns, Doing::Ended);
        self.switch_from(cpu, thread, DEAD, false)
    }

    pub(super) fn wait_for_futex(
        &mut self,
        cpu: usize,
        thread: usize,
        word: u64,
        operation: u32,
    ) -> Result<(), GenerateError> {
        self.actors[thread].in_futex =
            Some(Call { number: FUTEX_CALL, argument1: operation, argument0: word });
        self.sleep(cpu, thread, SLEEPING)
    }

    pub(super) fn wake(&mut self, cpu: usize, waker: usize, wakee: usize) {
        self.expected_run.edge(waker, wakee);
        self.wake_without_edge(cpu, wakee);
    }

    pub(super) fn wake_without_edge(&mut self, cpu: usize, wakee: usize) {
        let place = self.place(cpu, Context::Task);
        self.emitter.waking(place, self.actors[wakee].tid, SLEEPING, false, self.call_of(wakee));
        self.becomes_runnable(cpu, wakee);
    }
}

pub(super) fn grains(length: Ticks) -> u64 {
    (length.0 / Ticks::PER_NS).div_ceil(GRAIN_NS) * GRAIN_NS
}

pub(super) fn word(number: u32) -> u64 {
    0x5500_0000_0000 + 64 * u64::from(number)
}
