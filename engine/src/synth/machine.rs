//! Executes a program on a machine with P processors and writes down what the kernel would record, beside what
//! the recording must be understood as. Round-robin time slices with pre-emption, wake-up latency, interrupts
//! that land on whoever runs.
//!
//! Time goes in whole grains of [`GRAIN_NS`]; what a CPU does in a grain is stamped with its number inside it.
//! So no two CPUs share a time stamp, records in order of time are in the order in which things were done here,
//! and a stretch on one CPU still has its exact length.

mod sleep;

use super::Numbers;
use super::expected::{Doing, Ledger};
use super::recording::Execution;
use super::scribe::{Place, Scribe};
use crate::program::{Operation, Program};
use crate::time::Ticks;
use probe_abi::Context;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

/// Lengths are rounded up to whole grains; at most this many CPUs.
pub(super) const GRAIN_NS: u64 = 64;

const SLEEPING: u32 = 1;
const IN_DEVICE: u32 = 2;
const DEAD: u32 = 0x80;
const FUTEX_WAIT: u32 = 128;
const FUTEX_WAKE: u32 = 129;
const FUTEX_WAIT_BITSET: u32 = 9 | 128;
const TIMED_OUT: i64 = -110;

/// An operation that the generator does not execute.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the recording generator does not execute {0:?}")]
pub struct Unsupported(pub Operation);

/// What happens next; at the same time in order of CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    /// The thread enters the run queue.
    Ready(usize),
    /// An idle CPU looks for work.
    Dispatch,
    /// The CPU's thread has computed what it was given.
    Computed { turn: u64 },
    /// A device or timer wakes the thread.
    Timer(usize),
    /// A wake-up that ends nothing.
    Noise,
}

#[derive(Clone, Debug, Default)]
struct Cpu {
    current: Option<usize>,
    /// Counts what it was given to compute: what was planned before is void.
    turn: u64,
}

#[derive(Clone, Debug)]
struct Actor {
    tid: u32,
    next: usize,
    /// Compute left in the current operation.
    left_ns: u64,
    /// Part of it that is planned now, and what is left of the time slice.
    chunk_ns: u64,
    slice_ns: u64,
    stack: Vec<(u32, u64, bool)>,
    state: ActorState,
    /// CPU on which it last ran.
    cpu: u16,
    /// Result with which the futex call that it sleeps in will return.
    in_futex: Option<i64>,
    /// `ExecIn` is half done: compute, then return.
    returns: bool,
    joiners: Vec<usize>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ActorState {
    NotCreated,
    Queued,
    Running,
    Asleep,
    Ended,
}

#[derive(Clone, Debug, Default)]
struct Semaphore {
    count: u64,
    waiters: VecDeque<usize>,
}

pub(super) struct Machine<'a> {
    program: &'a Program,
    execution: &'a Execution,
    now: u64,
    events: BinaryHeap<Reverse<(u64, i32, u64, Event)>>,
    order: u64,
    cpus: Vec<Cpu>,
    actors: Vec<Actor>,
    queue: VecDeque<usize>,
    semaphores: Vec<Semaphore>,
    /// Released, and the thread that awaits it.
    edges: Vec<(bool, Option<usize>)>,
    pub(super) scribe: Scribe,
    pub(super) ledger: Ledger,
    numbers: Numbers,
}

/// Whether a thread goes on at once.
enum Outcome {
    GoesOn,
    Computes,
    Left,
}

impl<'a> Machine<'a> {
    pub(super) fn new(program: &'a Program, execution: &'a Execution) -> Machine<'a> {
        let cpus = execution.cpus.clamp(1, GRAIN_NS as u16);
        let created: Vec<usize> = program
            .threads
            .iter()
            .flat_map(|thread| &thread.operations)
            .filter_map(|operation| match operation {
                Operation::Create(thread) => Some(thread.0 as usize),
                _ => None,
            })
            .collect();
        let actors: Vec<Actor> = (0..program.threads.len())
            .map(|index| Actor {
                tid: execution.pid + index as u32,
                next: 0,
                left_ns: 0,
                chunk_ns: 0,
                slice_ns: 0,
                stack: Vec::new(),
                state: if created.contains(&index) { ActorState::NotCreated } else { ActorState::Queued },
                cpu: 0,
                in_futex: None,
                returns: false,
                joiners: Vec::new(),
            })
            .collect();
        let edge_count = program
            .threads
            .iter()
            .flat_map(|thread| &thread.operations)
            .filter_map(|operation| match operation {
                Operation::Release(edge) | Operation::Await(edge) => Some(edge.0 as usize + 1),
                _ => None,
            })
            .max()
            .unwrap_or(0);
        let scribe = Scribe::new(cpus, execution.rings, execution.first_sequence, execution.pid);
        let mut machine = Machine {
            program,
            execution,
            now: execution.start_ns.div_ceil(GRAIN_NS) * GRAIN_NS,
            events: BinaryHeap::new(),
            order: 0,
            cpus: vec![Cpu::default(); usize::from(cpus)],
            actors,
            queue: VecDeque::new(),
            semaphores: vec![Semaphore::default(); program.objects.len()],
            edges: vec![(false, None); edge_count],
            scribe,
            ledger: Ledger::new(program),
            numbers: Numbers::new(execution.seed),
        };
        for index in 0..machine.actors.len() {
            if machine.actors[index].state == ActorState::Queued {
                let tid = machine.actors[index].tid;
                machine.ledger.starts(index, tid, machine.now, true);
                machine.plan(machine.latency(), -1, Event::Ready(index));
            }
        }
        if execution.noise {
            machine.plan(machine.latency(), 0, Event::Noise);
        }
        machine
    }

    pub(super) fn start_ns(&self) -> u64 {
        self.now
    }

    /// Runs until nothing happens any more.
    pub(super) fn run(&mut self) -> Result<(), Unsupported> {
        while let Some(Reverse((time, cpu, _, event))) = self.events.pop() {
            self.now = time;
            let cpu = usize::try_from(cpu).unwrap_or(0);
            match event {
                Event::Ready(thread) => {
                    self.queue.push_back(thread);
                    let idle = (0..self.cpus.len()).filter(|&cpu| self.cpus[cpu].current.is_none());
                    let idle: Vec<usize> = idle.collect();
                    idle.into_iter().for_each(|cpu| self.plan(0, cpu as i32, Event::Dispatch));
                }
                Event::Dispatch => {
                    if self.cpus[cpu].current.is_none()
                        && let Some(thread) = self.queue.pop_front()
                    {
                        let place = self.place(cpu, Context::Task);
                        self.scribe.switch(place, self.actors[thread].tid, 0, false, 0);
                        self.begin(cpu, thread)?;
                    }
                }
                Event::Computed { turn } => self.computed(cpu, turn)?,
                Event::Timer(thread) => self.timer(cpu, thread),
                Event::Noise => self.make_noise(cpu),
            }
        }
        Ok(())
    }

    fn plan(&mut self, after_ns: u64, cpu: i32, event: Event) {
        self.order += 1;
        self.events.push(Reverse((self.now + after_ns, cpu, self.order, event)));
    }

    fn latency(&self) -> u64 {
        self.execution.latency_ns.div_ceil(GRAIN_NS).max(1) * GRAIN_NS
    }

    fn stamp(&self, cpu: usize) -> u64 {
        self.now + cpu as u64
    }

    fn place(&self, cpu: usize, context: Context) -> Place {
        let tid = self.cpus[cpu].current.map_or(0, |thread| self.actors[thread].tid);
        Place { time_ns: self.stamp(cpu), cpu: cpu as u16, context, tid }
    }

    /// The thread has been switched to.
    fn begin(&mut self, cpu: usize, thread: usize) -> Result<(), Unsupported> {
        self.cpus[cpu].current = Some(thread);
        let stamp = self.stamp(cpu);
        self.ledger.does(thread, stamp, Doing::Running);
        let slice_ns = self.execution.slice_ns.div_ceil(GRAIN_NS).max(1) * GRAIN_NS;
        let place = self.place(cpu, Context::Task);
        let actor = &mut self.actors[thread];
        actor.state = ActorState::Running;
        actor.slice_ns = slice_ns;
        actor.cpu = cpu as u16;
        if let Some(result) = actor.in_futex.take() {
            self.scribe.futex_exit(place, result);
        }
        self.go_on(cpu, thread)
    }

    fn computed(&mut self, cpu: usize, turn: u64) -> Result<(), Unsupported> {
        let Some(thread) = self.cpus[cpu].current.filter(|_| self.cpus[cpu].turn == turn) else {
            return Ok(());
        };
        let actor = &mut self.actors[thread];
        let chunk_ns = std::mem::take(&mut actor.chunk_ns);
        actor.left_ns -= chunk_ns;
        actor.slice_ns -= chunk_ns;
        let slice_over = actor.slice_ns == 0;
        self.ledger.computes(thread, chunk_ns);
        if slice_over && self.queue.is_empty() {
            self.actors[thread].slice_ns = self.execution.slice_ns.div_ceil(GRAIN_NS).max(1) * GRAIN_NS;
        } else if slice_over {
            let stamp = self.stamp(cpu);
            self.ledger.does(thread, stamp, Doing::Runnable);
            self.actors[thread].state = ActorState::Queued;
            self.plan(self.latency(), -1, Event::Ready(thread));
            return self.switch_from(cpu, thread, 0, true);
        }
        self.go_on(cpu, thread)
    }

    /// The thread goes on with its operations until it computes or leaves.
    fn go_on(&mut self, cpu: usize, thread: usize) -> Result<(), Unsupported> {
        loop {
            if self.actors[thread].left_ns > 0 {
                let actor = &mut self.actors[thread];
                actor.chunk_ns = actor.left_ns.min(actor.slice_ns);
                let chunk_ns = actor.chunk_ns;
                self.cpus[cpu].turn += 1;
                let turn = self.cpus[cpu].turn;
                self.plan(chunk_ns, cpu as i32, Event::Computed { turn });
                return Ok(());
            }
            if std::mem::take(&mut self.actors[thread].returns) {
                self.return_from(cpu, thread);
            }
            let index = self.actors[thread].next;
            self.actors[thread].next += 1;
            let Some(&operation) = self.program.threads[thread].operations.get(index) else {
                return self.end(cpu, thread);
            };
            match self.operation(cpu, thread, operation)? {
                Outcome::GoesOn | Outcome::Computes => {}
                Outcome::Left => return Ok(()),
            }
        }
    }

    fn operation(&mut self, cpu: usize, thread: usize, operation: Operation) -> Result<Outcome, Unsupported> {
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
                    Some(waiter) => self.wake_by_futex(cpu, thread, waiter, word(object.0)),
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
                self.wait_for_futex(cpu, thread, word(object.0), FUTEX_WAIT, 0)?;
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
                self.wait_for_futex(cpu, thread, word(1 << 20 | other as u32), FUTEX_WAIT_BITSET, 0)?;
                Ok(Outcome::Left)
            }
            Operation::Io(_, length) => {
                let length_ns = grains(length);
                if length_ns == 0 {
                    return Ok(Outcome::GoesOn);
                }
                self.plan(length_ns, cpu as i32, Event::Timer(thread));
                self.ledger.io(thread, length_ns);
                self.sleep(cpu, thread, IN_DEVICE)?;
                Ok(Outcome::Left)
            }
            Operation::Sleep(length) => {
                let length_ns = grains(length);
                if length_ns == 0 {
                    return Ok(Outcome::GoesOn);
                }
                self.plan(length_ns, cpu as i32, Event::Timer(thread));
                self.ledger.sleep(thread, length_ns);
                self.wait_for_futex(cpu, thread, word(1 << 21), FUTEX_WAIT, TIMED_OUT)?;
                Ok(Outcome::Left)
            }
            Operation::Release(edge) => {
                let (released, waiter) = &mut self.edges[edge.0 as usize];
                *released = true;
                if let Some(waiter) = waiter.take() {
                    self.wake(cpu, thread, waiter);
                }
                Ok(Outcome::GoesOn)
            }
            Operation::Await(edge) => {
                let (released, waiter) = &mut self.edges[edge.0 as usize];
                if *released {
                    return Ok(Outcome::GoesOn);
                }
                *waiter = Some(thread);
                self.sleep(cpu, thread, SLEEPING)?;
                Ok(Outcome::Left)
            }
            other => Err(Unsupported(other)),
        }
    }

    fn call(&mut self, cpu: usize, thread: usize, function: u32) {
        let actor = &self.actors[thread];
        let top = actor.stack.last().map_or(stack_base(actor.tid), |(_, sp, _)| *sp);
        let sp = top - 48 - 16 * u64::from(function % 8);
        let outermost = actor.stack.iter().all(|(open, ..)| *open != function);
        let recorded = outermost || !self.execution.fold_recursion;
        self.actors[thread].stack.push((function, sp, recorded));
        self.ledger.call(thread, function, outermost);
        if recorded {
            let place = self.place(cpu, Context::Task);
            self.scribe.function_enter(place, function, sp);
        }
    }

    fn return_from(&mut self, cpu: usize, thread: usize) {
        let Some((function, sp, recorded)) = self.actors[thread].stack.pop() else { return };
        let outermost = self.actors[thread].stack.iter().all(|(open, ..)| *open != function);
        self.ledger.ret(thread, outermost);
        if recorded {
            let place = self.place(cpu, Context::Task);
            self.scribe.function_exit(place, function, sp);
        }
    }

    fn create(&mut self, cpu: usize, thread: usize, other: usize) {
        if self.actors[other].state != ActorState::NotCreated {
            return;
        }
        self.actors[other].state = ActorState::Queued;
        let tid = self.actors[other].tid;
        let place = self.place(cpu, Context::Task);
        self.scribe.fork(place, tid, &self.program.threads[other].name);
        self.scribe.waking(place, tid, 0, true);
        self.ledger.starts(other, tid, place.time_ns, false);
        self.ledger.create(thread, other);
        self.plan(self.latency(), -1, Event::Ready(other));
    }

    fn end(&mut self, cpu: usize, thread: usize) -> Result<(), Unsupported> {
        let place = self.place(cpu, Context::Task);
        // Newer kernels report the exit before the joiner is woken, older ones after.
        let exit_first = self.numbers.below(2) == 0;
        if exit_first {
            self.scribe.exit(place, false);
        }
        for joiner in std::mem::take(&mut self.actors[thread].joiners) {
            self.wake(cpu, thread, joiner);
        }
        if !exit_first {
            self.scribe.exit(place, false);
        }
        self.actors[thread].state = ActorState::Ended;
        self.ledger.does(thread, place.time_ns, Doing::Ended);
        self.switch_from(cpu, thread, DEAD, false)
    }
}

fn grains(length: Ticks) -> u64 {
    (length.0 / Ticks::PER_NS).div_ceil(GRAIN_NS) * GRAIN_NS
}

fn word(number: u32) -> u64 {
    0x5500_0000_0000 + 64 * u64::from(number)
}

fn stack_base(tid: u32) -> u64 {
    0x7f00_0000_0000 + (u64::from(tid) << 24)
}
