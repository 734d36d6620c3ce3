//! The simulation: what each thread does next. The effect of an operation is in the file named after its object.

use super::actor::{Actor, Flow, Stage};
use super::agenda::Agenda;
use super::core::Core;
use super::machine::{Machine, Turn};
use super::objects::barrier::Barrier;
use super::objects::condition::Condition;
use super::objects::device::Devices;
use super::objects::lifecycle::{self, Joiners};
use super::objects::mutex::Mutex;
use super::objects::once::OnceCell;
use super::objects::read_write::ReadWrite;
use super::objects::recorded_wakes::Edges;
use super::objects::semaphore::Semaphore;
use super::objects::spin::Spin;
use super::objects::table::Table;
use super::objects::timer::{Timers, sleep, sleep_until};
use super::outcome::result::{Schedule, Step, Vertex};
use super::source::{Operations, Whole};
use super::steps::Steps;
use super::{Forest, Runs};
use crate::program::{Operation, Program, ProgramError, ThreadId};
use crate::time::Ticks;

/// A program being scheduled, on unlimited processors by default. [`Simulation::next_instant`] gives one instant after
/// the other; as an iterator it gives the vertices.
#[derive(Debug)]
pub struct Simulation<'a, M = Agenda, O = Whole<'a>> {
    pub(super) core: Core<'a, M>,
    pub(super) source: O,
    pub(super) steps: Steps,
    given: usize,
    semaphores: Table<Semaphore>,
    pub(super) mutexes: Table<Mutex>,
    pub(super) read_writes: Table<ReadWrite>,
    pub(super) spins: Table<Spin>,
    pub(super) barriers: Table<Barrier>,
    conditions: Table<Condition>,
    onces: Table<OnceCell>,
    devices: Devices,
    pub(super) edges: Edges,
    timers: Timers,
    joiners: Joiners,
}

impl<'a> Simulation<'a> {
    /// Ready to start on unlimited processors.
    ///
    /// # Errors
    /// The program fails [`Program::check`].
    pub fn new(program: &'a Program) -> Result<Simulation<'a>, ProgramError> {
        program.check()?;
        let mut simulation = Simulation::with(program, Whole::of(program), Agenda::default(), None);
        simulation.number_runs();
        simulation.core.forest = Forest::with_capacity(simulation.core.runs.len());
        simulation.edges = Edges::of(program, true);
        Ok(simulation)
    }

    /// Keeps the order in which operations take effect, for tests.
    pub(crate) fn traced(mut self) -> Simulation<'a> {
        // Semaphores that were initialized before any thread acted.
        let done = self.core.actors.iter().zip(0..).flat_map(|(actor, thread)| {
            (0..actor.next).map(move |operation| Step { thread: ThreadId(thread), operation, begins: false })
        });
        self.core.trace = Some(done.collect());
        self
    }

    /// The results; runs to the end first.
    pub fn finish(mut self) -> Schedule {
        let mut vertices = Vec::new();
        while self.next_instant(&mut vertices).is_some() {}
        self.into_schedule()
    }
}

impl<'a, M: Machine, O: Operations> Simulation<'a, M, O> {
    /// Advances by one instant, replaces `vertices` by the vertices of that instant, and returns its time; `None` when
    /// nothing more happens.
    pub fn next_instant(&mut self, vertices: &mut Vec<Vertex>) -> Option<Ticks> {
        self.core.vertices.clear();
        let now = self.instant()?;
        std::mem::swap(vertices, &mut self.core.vertices);
        Some(Ticks(now))
    }

    /// The deciding points so far.
    pub fn forest(&self) -> &Forest {
        &self.core.forest
    }

    /// The results of a simulation that is over.
    pub(super) fn into_schedule(mut self) -> Schedule {
        Schedule {
            findings: self.findings(),
            done: self.done(),
            length: Ticks(self.core.end.time),
            end: self.core.end.point,
            forest: self.core.forest,
            runs: self.core.runs,
            trace: self.core.trace.unwrap_or_default(),
        }
    }

    /// A simulation before its start. `program` gives the threads, objects and names that the operations refer to.
    pub(super) fn with(
        program: &'a Program,
        source: O,
        machine: M,
        trace: Option<Vec<Step>>,
    ) -> Simulation<'a, M, O> {
        let objects = program.objects.len();
        let core = Core::new(program, machine, trace, |thread| source.is_created(thread));
        let mut simulation = Simulation {
            core,
            source,
            steps: Steps::of(program),
            given: 0,
            semaphores: Table::new(objects),
            mutexes: Table::new(objects),
            read_writes: Table::new(objects),
            spins: Table::new(objects),
            barriers: Table::new(objects),
            conditions: Table::new(objects),
            onces: Table::new(objects),
            devices: Devices::new(objects),
            edges: Edges::of(program, false),
            timers: Timers::default(),
            joiners: Joiners::new(program.threads.len()),
        };
        simulation.begin();
        simulation
    }

    /// Keeps when each run of compute operations begins.
    pub(super) fn number_runs(&mut self) {
        self.core.runs = Runs::of(self.core.program);
        for (thread, actor) in self.core.actors.iter_mut().enumerate() {
            actor.next_run = self.core.runs.first_of(thread);
        }
    }

    /// Threads without a creator are woken at the start.
    fn begin(&mut self) {
        self.fill_semaphores();
        for thread in 0..self.core.actors.len() {
            if self.core.actors[thread].stage != Stage::NotCreated {
                self.core.wake(thread as u32, None);
            }
        }
    }

    /// Sets the semaphores that threads without a creator initialize first, before any thread acts. Otherwise an
    /// initialization that comes late would undo a post by another thread.
    fn fill_semaphores(&mut self) {
        let Simulation { core, source, semaphores, .. } = self;
        for thread in 0..core.actors.len() as u32 {
            while core.actors[thread as usize].stage == Stage::Going
                && let Some(Operation::SemInit(object, count)) =
                    source.at(thread, core.actors[thread as usize].next)
            {
                semaphores.at(object).init(core, thread, count);
            }
        }
    }

    /// Advances by one instant and returns the time of that instant; `None` when nothing more happens.
    pub(super) fn instant(&mut self) -> Option<u64> {
        if self.core.backgrounds.is_over() {
            return None;
        }
        self.steps.take()?;
        let now = self.core.machine.next_instant()?;
        self.source.now(now);
        while let Some(turn) = self.core.machine.next_turn() {
            if !M::DECIDES {
                self.core.end.time = now;
            }
            let (Turn::Act(thread) | Turn::Expired(thread)) = turn;
            self.core.end_latency(thread);
            match turn {
                Turn::Act(thread) => self.advance(thread),
                Turn::Expired(thread) => self.devices.expired(&mut self.core, thread),
            }
        }
        Some(now)
    }

    /// Limits how many threads each device serves at once.
    pub(super) fn limit(&mut self, servers: &[u32]) {
        self.devices.limit(servers, self.core.actors.len());
    }

    /// For each thread: number of operations that it has done.
    pub(super) fn done(&self) -> Vec<usize> {
        let own = |actor: &Actor, thread| {
            self.core.backgrounds.done(thread, actor.next).unwrap_or(actor.next as usize)
        };
        let done = self.core.actors.iter().zip(0..).map(|(actor, thread)| own(actor, thread));
        done.collect()
    }

    /// Lets the thread act until it computes or waits.
    fn advance(&mut self, thread: u32) {
        let now = self.core.machine.now();
        self.core.backgrounds.note_turn(thread, now);
        loop {
            if self.core.backgrounds.is_background(thread) {
                self.core.begin_again(thread);
            }
            let actor = &mut self.core.actors[thread as usize];
            match self.source.at(thread, actor.next) {
                Some(Operation::Call(_) | Operation::Return | Operation::Held(..) | Operation::Freed(..)) => {
                    actor.next += 1
                }
                Some(Operation::Exec(length) | Operation::ExecIn(_, length)) => {
                    actor.next += 1;
                    if !actor.computing {
                        self.core.begin_run(thread);
                    }
                    return self.core.take_time(thread, length);
                }
                other => {
                    if actor.computing && actor.stage == Stage::Going {
                        self.core.end_run(thread);
                    }
                    let flow = match other {
                        Some(operation) => self.synchronize(thread, operation),
                        None => self.joiners.end_thread(&mut self.core, thread),
                    };
                    match flow {
                        Flow::On => {}
                        Flow::Stop => return,
                        Flow::Wait(why) => return self.core.machine.block(thread, why),
                        Flow::Spin(object) => return self.core.machine.spin(thread, object),
                    }
                }
            }
        }
    }

    fn synchronize(&mut self, thread: u32, operation: Operation) -> Flow {
        let core = &mut self.core;
        match operation {
            Operation::Signal(object) | Operation::SemPost(object) => {
                self.semaphores.at(object).post(core, thread)
            }
            Operation::Wait(object) | Operation::SemWait(object) => {
                self.semaphores.at(object).wait(core, thread, object)
            }
            Operation::SemInit(object, count) => self.semaphores.at(object).init(core, thread, count),
            Operation::Lock(object) => self.mutexes.at(object).lock(core, thread, object),
            Operation::Unlock(object) => self.mutexes.at(object).unlock(core, thread, object),
            Operation::ReadLock(object) => self.read_writes.at(object).read_lock(core, thread, object),
            Operation::WriteLock(object) => self.read_writes.at(object).write_lock(core, thread, object),
            Operation::ReadWriteUnlock(object) => self.read_writes.at(object).unlock(core, thread, object),
            Operation::SpinLock(object) => self.spins.at(object).lock(core, thread, object),
            Operation::SpinUnlock(object) => self.spins.at(object).unlock(core, thread, object),
            Operation::Barrier(object, count) => self.barriers.at(object).meet(core, thread, object, count),
            Operation::CondWait(object, mutex) => {
                let lock = self.mutexes.at(mutex);
                self.conditions.at(object).wait(core, thread, object, lock, mutex)
            }
            Operation::CondSignal(object) => self.conditions.at(object).signal(core, thread),
            Operation::CondBroadcast(object) => self.conditions.at(object).broadcast(core, thread),
            Operation::Once(object, length) => self.onces.at(object).once(core, thread, object, length),
            Operation::Create(other) => lifecycle::create(core, thread, other),
            Operation::Join(other) => self.joiners.join(core, thread, other),
            Operation::Io(object, length) => self.devices.io(core, thread, object, length),
            Operation::Sleep(length) => sleep(core, thread, length),
            Operation::SleepUntil(end) => sleep_until(core, thread, end),
            Operation::SleepNext(length) => self.timers.sleep_next(core, thread, length),
            Operation::Release(edge) => self.edges.release(core, thread, edge),
            Operation::Await(edge) => self.edges.await_release(core, thread, edge),
            // `advance` handles these operations.
            Operation::Exec(_)
            | Operation::ExecIn(..)
            | Operation::Call(_)
            | Operation::Return
            | Operation::Held(..)
            | Operation::Freed(..) => Flow::On,
        }
    }
}

impl Iterator for Simulation<'_> {
    type Item = Vertex;

    fn next(&mut self) -> Option<Vertex> {
        loop {
            if let Some(vertex) = self.core.vertices.get(self.given) {
                self.given += 1;
                return Some(*vertex);
            }
            let mut vertices = std::mem::take(&mut self.core.vertices);
            self.given = 0;
            self.next_instant(&mut vertices)?;
            self.core.vertices = vertices;
        }
    }
}
