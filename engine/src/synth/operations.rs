//! What each operation does on the generator's machine, and the records it leaves.

use super::expected::Doing;
use super::machine::{
    ActorState, DEAD, Event, FUTEX_WAIT, FUTEX_WAIT_BITSET, GRAIN_NS, GenerateError, IN_DEVICE, Machine,
    Outcome, SLEEPING, stack_base,
};
use crate::event::FUTEX_CALL;
use crate::program::Operation;
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
                Ok(Outcome::Computes)
            }
            Operation::ExecIn(function, length) => {
                self.call(cpu, thread, function.0);
                self.actors[thread].left_ns = grains(length);
                self.actors[thread].returns = true;
                Ok(Outcome::Computes)
            }
            Operation::Call(function) => {
                self.call(cpu, thread, function.0);
                Ok(Outcome::GoesOn)
            }
            Operation::Return => {
                self.return_from(cpu, thread);
                Ok(Outcome::GoesOn)
            }
            Operation::Signal(object) | Operation::SemPost(object) => {
                let semaphore = &mut self.semaphores[object.0 as usize];
                match semaphore.waiters.pop_front() {
                    None => semaphore.count += 1,
                    Some(waiter) => self.wake(cpu, thread, waiter),
                }
                Ok(Outcome::GoesOn)
            }
            Operation::Wait(object) | Operation::SemWait(object) => {
                let semaphore = &mut self.semaphores[object.0 as usize];
                if semaphore.count > 0 {
                    semaphore.count -= 1;
                    return Ok(Outcome::GoesOn);
                }
                semaphore.waiters.push_back(thread);
                self.wait_for_futex(cpu, thread, word(object.0), FUTEX_WAIT)?;
                Ok(Outcome::Left)
            }
            Operation::Create(other) => {
                self.create(cpu, thread, other.0 as usize);
                Ok(Outcome::GoesOn)
            }
            Operation::Join(other) => {
                let other = other.0 as usize;
                if self.actors[other].state == ActorState::Ended {
                    return Ok(Outcome::GoesOn);
                }
                self.actors[other].joiners.push(thread);
                self.wait_for_futex(cpu, thread, word(1 << 20 | other as u32), FUTEX_WAIT_BITSET)?;
                Ok(Outcome::Left)
            }
            Operation::Io(_, length) => {
                let length_ns = grains(length);
                if length_ns == 0 {
                    return Ok(Outcome::GoesOn);
                }
                self.plan(length_ns, cpu as i32, Event::Timer(thread));
                self.expected_run.io(thread, length_ns);
                self.sleep(cpu, thread, IN_DEVICE)?;
                Ok(Outcome::Left)
            }
            Operation::Sleep(length) => {
                let length_ns = grains(length);
                if length_ns == 0 {
                    return Ok(Outcome::GoesOn);
                }
                self.plan(length_ns, cpu as i32, Event::Timer(thread));
                self.expected_run.sleep(thread, length_ns);
                // Each for something else: the same one again would be one wait that polls.
                let word = word(1 << 21 | (self.now / GRAIN_NS) as u32 & 0xf_ffff);
                self.wait_for_futex(cpu, thread, word, FUTEX_WAIT)?;
                Ok(Outcome::Left)
            }
            Operation::Release(edge) => {
                let (released, waiter) = &mut self.edges[edge.0 as usize];
                *released = true;
                for waiter in std::mem::take(waiter) {
                    self.wake(cpu, thread, waiter);
                }
                Ok(Outcome::GoesOn)
            }
            Operation::Await(edge) => {
                let (released, waiter) = &mut self.edges[edge.0 as usize];
                if *released {
                    return Ok(Outcome::GoesOn);
                }
                waiter.push(thread);
                self.sleep(cpu, thread, SLEEPING)?;
                Ok(Outcome::Left)
            }
            other => Err(GenerateError::Unsupported(other)),
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
        // Newer kernels report the exit before the joiner is woken, older ones after.
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
