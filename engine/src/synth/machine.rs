//! Executes a program on a machine with P processors, and writes the kernel's records and the states that a reader must
//! derive from them. The machine has round-robin time slices with pre-emption, wake-up latency, and interrupts that hit
//! the running thread.
//!
//! Time advances in grains of [`GRAIN_NS`]. An action of a CPU within a grain is stamped with the grain's start plus
//! the CPU's number. So no two CPUs share a time stamp, and the order of records in time is the order of execution. A
//! stretch on one CPU still has its exact length.

use super::Numbers;
use super::execution::Execution;
use super::expected::{Doing, ExpectedRun};
use super::sync::{Inside, Shared, Way, hand_made};
use super::trace_emitter::{Left, Stamp, TraceEmitter};
use crate::program::{ObjectId, Operation, Program, ProgramError};
use probe_abi::{Call, Context};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};

/// Length of a grain, ns: lengths are rounded up to a multiple of it. It is also the largest number of CPUs.
pub(super) const GRAIN_NS: u64 = 64;

pub(super) const SLEEPING: u32 = 1;
pub(super) const IN_DEVICE: u32 = 2;
pub(super) const DEAD: u32 = 0x80;
pub(super) const FUTEX_WAIT: u32 = 128;
pub(super) const FUTEX_WAIT_BITSET: u32 = 9 | 128;

/// Why a program cannot be executed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GenerateError {
    /// The generator does not execute this operation.
    #[error("the recording generator does not execute {0:?}")]
    Unsupported(Operation),
    /// The program fails `Program::check`.
    #[error(transparent)]
    Invalid(#[from] ProgramError),
}

/// An event of the machine; at the same time in order of CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Event {
    /// The thread enters the run queue.
    Ready(usize),
    /// An idle CPU checks for runnable threads.
    Dispatch,
    /// The CPU's thread has computed its chunk.
    Computed { turn: u64 },
    /// A device or timer wakes the thread.
    Timer(usize),
    /// A wake-up that ends no wait.
    Noise,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Cpu {
    pub(super) current: Option<usize>,
    /// Counts chunks, so that events of earlier chunks are void.
    pub(super) turn: u64,
}

#[derive(Clone, Debug)]
pub(super) struct Actor {
    pub(super) tid: u32,
    pub(super) next: usize,
    /// Rest of the current compute operation.
    pub(super) left_ns: u64,
    /// Length of the present chunk, and the remaining time of the slice, ns.
    pub(super) chunk_ns: u64,
    pub(super) slice_ns: u64,
    pub(super) stack: Vec<(u32, u64, bool)>,
    pub(super) state: ActorState,
    /// CPU on which the thread last ran.
    pub(super) cpu: u16,
    /// The futex call in which the thread sleeps.
    pub(super) in_futex: Option<Call>,
    /// An `ExecIn` has been entered: after computing, the function returns.
    pub(super) returns: bool,
    pub(super) joiners: Vec<usize>,
    /// The recorded operation that the thread is in.
    pub(super) inside: Option<Inside>,
    /// The semaphore that the thread takes by a condition variable, and how far it has got.
    pub(super) consumes: Option<ObjectId>,
    pub(super) way: Option<Way>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ActorState {
    NotCreated,
    Queued,
    Running,
    Asleep,
    Ended,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Semaphore {
    pub(super) count: u64,
    pub(super) waiters: VecDeque<usize>,
}

pub(super) struct Machine<'a> {
    pub(super) program: &'a Program,
    pub(super) execution: &'a Execution,
    pub(super) now: u64,
    pub(super) events: BinaryHeap<Reverse<(u64, i32, u64, Event)>>,
    pub(super) order: u64,
    pub(super) cpus: Vec<Cpu>,
    pub(super) actors: Vec<Actor>,
    pub(super) queue: VecDeque<usize>,
    pub(super) semaphores: Vec<Semaphore>,
    pub(super) shared: Vec<Shared>,
    /// Semaphores that are built from a condition variable, with their mutexes.
    pub(super) hand_made: BTreeMap<ObjectId, ObjectId>,
    /// For each thread: whether another thread creates it.
    pub(super) created: Vec<bool>,
    /// For each edge: whether it was released, and the threads that await it.
    pub(super) edges: Vec<(bool, Vec<usize>)>,
    pub(super) emitter: TraceEmitter,
    pub(super) expected_run: ExpectedRun,
    pub(super) numbers: Numbers,
}

/// Whether a thread continues after an operation.
pub(super) enum Outcome {
    GoesOn,
    Computes,
    Left,
}

impl<'a> Machine<'a> {
    pub(super) fn new(program: &'a Program, execution: &'a Execution) -> Machine<'a> {
        let cpus = execution.cpus.clamp(1, GRAIN_NS as u16);
        let created: Vec<usize> = program.created().map(|thread| thread.0 as usize).collect();
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
                inside: None,
                consumes: None,
                way: None,
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
        let emitter = TraceEmitter::new(
            cpus,
            execution.rings,
            execution.first_sequence,
            execution.pid,
            program.threads.len(),
        );
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
            hand_made: if execution.hand_made { hand_made(program) } else { BTreeMap::new() },
            shared: vec![Shared::default(); program.objects.len()],
            created: (0..program.threads.len()).map(|index| created.contains(&index)).collect(),
            edges: vec![(false, Vec::new()); edge_count],
            emitter,
            expected_run: ExpectedRun::new(program, execution.operations),
            numbers: Numbers::new(execution.seed),
        };
        for index in 0..machine.actors.len() {
            if machine.actors[index].state == ActorState::Queued {
                let tid = machine.actors[index].tid;
                machine.expected_run.starts(index, tid, machine.now, true);
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

    /// Runs until there are no more events.
    pub(super) fn run(&mut self) -> Result<(), GenerateError> {
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
                        self.emitter.switch(place, self.actors[thread].tid, Left::default());
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

    pub(super) fn plan(&mut self, after_ns: u64, cpu: i32, event: Event) {
        self.order += 1;
        self.events.push(Reverse((self.now + after_ns, cpu, self.order, event)));
    }

    pub(super) fn latency(&self) -> u64 {
        self.execution.latency_ns.div_ceil(GRAIN_NS).max(1) * GRAIN_NS
    }

    pub(super) fn stamp(&self, cpu: usize) -> u64 {
        self.now + cpu as u64
    }

    pub(super) fn place(&self, cpu: usize, context: Context) -> Stamp {
        let tid = self.cpus[cpu].current.map_or(0, |thread| self.actors[thread].tid);
        Stamp { time_ns: self.stamp(cpu), cpu: cpu as u16, context, tid }
    }

    /// The thread gets the CPU.
    pub(super) fn begin(&mut self, cpu: usize, thread: usize) -> Result<(), GenerateError> {
        self.cpus[cpu].current = Some(thread);
        let stamp = self.stamp(cpu);
        self.expected_run.does(thread, stamp, Doing::Running);
        let slice_ns = self.execution.slice_ns.div_ceil(GRAIN_NS).max(1) * GRAIN_NS;
        let actor = &mut self.actors[thread];
        actor.state = ActorState::Running;
        actor.slice_ns = slice_ns;
        actor.cpu = cpu as u16;
        actor.in_futex = None;
        self.go_on(cpu, thread)
    }

    pub(super) fn computed(&mut self, cpu: usize, turn: u64) -> Result<(), GenerateError> {
        let Some(thread) = self.cpus[cpu].current.filter(|_| self.cpus[cpu].turn == turn) else {
            return Ok(());
        };
        let actor = &mut self.actors[thread];
        let chunk_ns = std::mem::take(&mut actor.chunk_ns);
        actor.left_ns -= chunk_ns;
        actor.slice_ns -= chunk_ns;
        let slice_over = actor.slice_ns == 0;
        if self.actors[thread].inside.is_some() {
            self.expected_run.uses_cpu(thread, chunk_ns);
        } else {
            self.expected_run.computes(thread, chunk_ns);
        }
        if slice_over && self.queue.is_empty() {
            self.actors[thread].slice_ns = self.execution.slice_ns.div_ceil(GRAIN_NS).max(1) * GRAIN_NS;
        } else if slice_over {
            let stamp = self.stamp(cpu);
            self.expected_run.does(thread, stamp, Doing::Runnable);
            self.actors[thread].state = ActorState::Queued;
            self.plan(self.latency(), -1, Event::Ready(thread));
            return self.switch_from(cpu, thread, 0, true);
        }
        self.go_on(cpu, thread)
    }

    /// Lets the thread do its operations until it computes or leaves the CPU.
    pub(super) fn go_on(&mut self, cpu: usize, thread: usize) -> Result<(), GenerateError> {
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

    pub(super) fn sleep(&mut self, cpu: usize, thread: usize, state: u32) -> Result<(), GenerateError> {
        self.actors[thread].state = ActorState::Asleep;
        let stamp = self.stamp(cpu);
        self.expected_run.does(thread, stamp, Doing::Blocked);
        self.switch_from(cpu, thread, state, false)
    }

    /// The CPU switches to the next thread in the queue, or becomes idle.
    pub(super) fn switch_from(
        &mut self,
        cpu: usize,
        thread: usize,
        state: u32,
        preempted: bool,
    ) -> Result<(), GenerateError> {
        let actor = &self.actors[thread];
        let top = actor.stack.last().map_or(stack_base(actor.tid), |(_, sp, _)| *sp);
        let user_sp = if self.numbers.below(2) == 0 { 0 } else { top - 24 };
        let call = self.call_of(thread);
        let left = Left { state, preempted, user_sp, call };
        let place = self.place(cpu, Context::Task);
        self.cpus[cpu].turn += 1;
        match self.queue.pop_front() {
            Some(next) => {
                self.emitter.switch(place, self.actors[next].tid, left);
                self.begin(cpu, next)
            }
            None => {
                self.emitter.switch(place, 0, left);
                self.cpus[cpu].current = None;
                Ok(())
            }
        }
    }

    /// A device's or a timer's interrupt wakes the thread; it hits the thread that runs on the CPU.
    pub(super) fn timer(&mut self, cpu: usize, thread: usize) {
        let in_device = self.actors[thread].in_futex.is_none();
        let (context, state) = match (in_device, self.numbers.below(2)) {
            (true, 0) => (Context::SoftIrq, IN_DEVICE),
            (true, _) => (Context::HardIrq, IN_DEVICE),
            (false, _) => (Context::HardIrq, SLEEPING),
        };
        let place = self.place(cpu, context);
        self.emitter.waking(place, self.actors[thread].tid, state, false, self.call_of(thread));
        self.becomes_runnable(cpu, thread);
    }

    /// The system call that a thread sleeps in.
    pub(super) fn call_of(&self, thread: usize) -> Call {
        self.actors.get(thread).and_then(|actor| actor.in_futex).unwrap_or(Call::NONE)
    }

    pub(super) fn becomes_runnable(&mut self, cpu: usize, thread: usize) {
        let stamp = self.stamp(cpu);
        self.expected_run.does(thread, stamp, Doing::Runnable);
        self.actors[thread].state = ActorState::Queued;
        self.plan(self.latency(), -1, Event::Ready(thread));
    }

    /// Emits a wake-up that ends no wait: of a thread that does not sleep, or a second one.
    pub(super) fn make_noise(&mut self, cpu: usize) {
        let thread = self.numbers.below(self.actors.len() as u64) as usize;
        let context = if self.numbers.below(2) == 0 { Context::HardIrq } else { Context::Task };
        if let Some(actor) = self.actors.get(thread)
            && self.cpus[cpu].current != Some(thread)
        {
            let (tid, state, has_run) = (actor.tid, actor.state, actor.next > 0);
            let place = self.place(cpu, context);
            match state {
                ActorState::Queued if self.execution.second_wakings && has_run => {
                    self.emitter.waking(place, tid, SLEEPING, false, Call::NONE);
                }
                ActorState::Queued => {}
                ActorState::Running => self.emitter.waking(place, tid, 0, false, Call::NONE),
                ActorState::NotCreated | ActorState::Asleep | ActorState::Ended => {}
            }
        }
        if !self.events.is_empty() {
            let cpu = self.numbers.below(self.cpus.len() as u64) as i32;
            let after_ns = self.numbers.below(64) * GRAIN_NS;
            self.plan(after_ns + GRAIN_NS, cpu, Event::Noise);
        }
    }
}

pub(super) fn stack_base(tid: u32) -> u64 {
    0x7f00_0000_0000 + (u64::from(tid) << 24)
}
