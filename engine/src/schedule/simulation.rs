//! The simulation: what each thread does next, and the vertices that result. The effect of an operation is in the file
//! named after its object.

use super::actor::{Actor, Flow, Moment, Stage, Timer};
use super::agenda::Agenda;
use super::background::BackgroundState;
use super::machine::{Machine, Turn};
use super::objects::barrier::Barrier;
use super::objects::condition::Condition;
use super::objects::device::Device;
use super::objects::mutex::Mutex;
use super::objects::once::OnceCell;
use super::objects::queue::{Links, WaitQueue};
use super::objects::read_write::ReadWrite;
use super::objects::recorded_wakes::Edges;
use super::objects::semaphore::Semaphore;
use super::objects::spin::Spin;
use super::objects::table::Table;
use super::outcome::consistency::ConsistencyWarnings;
use super::outcome::result::{Charge, Delay, Latency, Schedule, Step, Vertex};
use super::outcome::usage::Usage;
use super::source::{Operations, Whole};
use super::steps::Steps;
use super::{Forest, PointId, Runs};
use crate::program::{ObjectId, Operation, Program, ProgramError, ThreadId};
use crate::time::Ticks;
use rustc_hash::FxHashMap;

/// A program being scheduled, on unlimited processors by default. [`Simulation::next_instant`] gives one instant after
/// the other; as an iterator it gives the vertices.
#[derive(Debug)]
pub struct Simulation<'a, M = Agenda, O = Whole<'a>> {
    /// The program, for its names; operations come from `source`.
    pub(super) program: &'a Program,
    pub(super) source: O,
    pub(super) machine: M,
    pub(super) actors: Vec<Actor>,
    pub(super) links: Links,
    pub(super) forest: Forest,
    pub(super) runs: Runs,
    pub(super) end: Moment,
    pub(super) vertices: Vec<Vertex>,
    pub(super) steps: Steps,
    given: usize,
    pub(super) semaphores: Table<Semaphore>,
    pub(super) mutexes: Table<Mutex>,
    pub(super) read_writes: Table<ReadWrite>,
    pub(super) spins: Table<Spin>,
    pub(super) barriers: Table<Barrier>,
    pub(super) conditions: Table<Condition>,
    pub(super) onces: Table<OnceCell>,
    pub(super) devices: Table<Device>,
    /// For each object: how many threads the device serves at once; 0 or missing: any number.
    pub(super) servers: Vec<u32>,
    /// The device that serves each thread; empty if no device is limited.
    pub(super) served_by: Vec<Option<ObjectId>>,
    pub(super) edges: Edges,
    /// For each thread with a timer: the timer's last end, which may be in the future.
    pub(super) deadlines: FxHashMap<u32, Moment>,
    pub(super) joiners: Vec<WaitQueue>,
    pub(super) warnings: ConsistencyWarnings,
    pub(super) usage: Usage,
    pub(super) trace: Option<Vec<Step>>,
    /// For each thread: its timer, if [`Machine::COSTS`].
    pub(super) timers: FxHashMap<u32, Timer>,
    /// Steps other than computing, in order of their points, if [`Machine::COSTS`].
    pub(super) latencies: Vec<Latency>,
    /// Costs of waking other threads, with the runs that compute these costs.
    pub(super) charges: Vec<Charge>,
    /// Threads' states as background threads; empty if the program has none.
    pub(super) backgrounds: Vec<BackgroundState>,
    /// Number of foreground threads that have not ended.
    pub(super) foreground: usize,
    /// Time at which a thread that does not repeat its operations last had a turn.
    pub(super) last_turn: u64,
    /// Repeated runs, with the number of the run that each repeats, if [`Machine::COSTS`].
    pub(super) echoes: Vec<(PointId, u32)>,
    /// Latencies of woken threads, if a trace is kept.
    pub(super) delays: Vec<Delay>,
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
        simulation.forest = Forest::with_capacity(simulation.runs.len());
        simulation.edges = Edges::of(program, true);
        Ok(simulation)
    }

    /// Keeps the order in which operations take effect, for tests.
    pub(crate) fn traced(mut self) -> Simulation<'a> {
        // Semaphores that were initialized before any thread acted.
        let done = self.actors.iter().zip(0..).flat_map(|(actor, thread)| {
            (0..actor.next).map(move |operation| Step { thread: ThreadId(thread), operation, begins: false })
        });
        self.trace = Some(done.collect());
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
        self.vertices.clear();
        let now = self.instant()?;
        std::mem::swap(vertices, &mut self.vertices);
        Some(Ticks(now))
    }

    /// The deciding points so far.
    pub fn forest(&self) -> &Forest {
        &self.forest
    }

    /// The results of a simulation that is over.
    pub(super) fn into_schedule(mut self) -> Schedule {
        Schedule {
            findings: self.findings(),
            done: self.done(),
            length: Ticks(self.end.time),
            end: self.end.point,
            forest: self.forest,
            runs: self.runs,
            trace: self.trace.unwrap_or_default(),
        }
    }

    /// A simulation before its start. `program` gives the threads, objects and names that the operations refer to.
    pub(super) fn with(
        program: &'a Program,
        source: O,
        machine: M,
        trace: Option<Vec<Step>>,
    ) -> Simulation<'a, M, O> {
        let threads = program.threads.len();
        let objects = program.objects.len();
        let first = Actor {
            next: 0,
            point: PointId::START,
            since: 0,
            next_run: 0,
            stage: Stage::Going,
            computing: false,
            timed: false,
        };
        let mut actors = vec![first; threads];
        for (actor, thread) in actors.iter_mut().zip(0..) {
            if source.is_created(thread) {
                actor.stage = Stage::NotCreated;
            }
        }
        let mut simulation = Simulation {
            program,
            source,
            machine,
            actors,
            links: Links::new(threads),
            forest: Forest::with_capacity(0),
            runs: Runs::default(),
            end: Moment { time: 0, point: PointId::START },
            vertices: Vec::new(),
            steps: Steps::of(program),
            given: 0,
            semaphores: Table::new(objects),
            mutexes: Table::new(objects),
            read_writes: Table::new(objects),
            spins: Table::new(objects),
            barriers: Table::new(objects),
            conditions: Table::new(objects),
            onces: Table::new(objects),
            devices: Table::new(objects),
            servers: Vec::new(),
            served_by: Vec::new(),
            edges: Edges::of(program, false),
            deadlines: FxHashMap::default(),
            joiners: vec![WaitQueue::default(); threads],
            warnings: ConsistencyWarnings::default(),
            usage: Usage::of(if M::DECIDES { 0 } else { objects }),
            trace,
            timers: FxHashMap::default(),
            latencies: Vec::new(),
            charges: Vec::new(),
            backgrounds: super::background::states(program),
            foreground: program.threads.iter().filter(|thread| thread.background.is_none()).count(),
            last_turn: 0,
            echoes: Vec::new(),
            delays: Vec::new(),
        };
        simulation.begin();
        simulation
    }

    /// Keeps when each run of compute operations begins.
    pub(super) fn number_runs(&mut self) {
        self.runs = Runs::of(self.program);
        for (thread, actor) in self.actors.iter_mut().enumerate() {
            actor.next_run = self.runs.first_of(thread);
        }
    }

    /// Threads without a creator are woken at the start.
    fn begin(&mut self) {
        self.fill_semaphores();
        for thread in 0..self.actors.len() {
            if self.actors[thread].stage != Stage::NotCreated {
                self.wake(thread as u32, None);
            }
        }
    }

    /// Advances by one instant and returns the time of that instant; `None` when nothing more happens.
    pub(super) fn instant(&mut self) -> Option<u64> {
        if self.is_over() {
            return None;
        }
        self.steps.take()?;
        let now = self.machine.next_instant()?;
        self.source.now(now);
        while let Some(turn) = self.machine.next_turn() {
            if !M::DECIDES {
                self.end.time = now;
            }
            let (Turn::Act(thread) | Turn::Expired(thread)) = turn;
            self.end_latency(thread);
            match turn {
                Turn::Act(thread) => self.advance(thread),
                Turn::Expired(thread) => self.expired(thread),
            }
        }
        Some(now)
    }

    /// Limits how many threads each device serves at once.
    pub(super) fn limit(&mut self, servers: &[u32]) {
        self.servers = servers.to_vec();
        if servers.iter().any(|servers| *servers > 0) {
            self.served_by = vec![None; self.actors.len()];
        }
    }

    /// For each thread: number of operations that it has done.
    pub(super) fn done(&self) -> Vec<usize> {
        let own = |actor: &Actor, thread| self.done_in_background(thread).unwrap_or(actor.next as usize);
        let done = self.actors.iter().zip(0..).map(|(actor, thread)| own(actor, thread));
        done.collect()
    }

    /// Lets the thread act until it computes or waits.
    fn advance(&mut self, thread: u32) {
        self.note_turn(thread);
        loop {
            if self.is_background(thread) {
                self.begin_again(thread);
            }
            let actor = &mut self.actors[thread as usize];
            match self.source.at(thread, actor.next) {
                Some(Operation::Call(_) | Operation::Return | Operation::Held(..) | Operation::Freed(..)) => {
                    actor.next += 1
                }
                Some(Operation::Exec(length) | Operation::ExecIn(_, length)) => {
                    actor.next += 1;
                    if !actor.computing {
                        self.begin_run(thread);
                    }
                    return self.take_time(thread, length);
                }
                other => {
                    if actor.computing && actor.stage == Stage::Going {
                        self.end_run(thread);
                    }
                    let flow = match other {
                        Some(operation) => self.synchronize(thread, operation),
                        None => self.end_thread(thread),
                    };
                    match flow {
                        Flow::On => {}
                        Flow::Stop => return,
                        Flow::Wait(why) => return self.machine.block(thread, why),
                        Flow::Spin(object) => return self.machine.spin(thread, object),
                    }
                }
            }
        }
    }

    fn synchronize(&mut self, thread: u32, operation: Operation) -> Flow {
        match operation {
            Operation::Signal(object) | Operation::SemPost(object) => self.post(thread, object),
            Operation::Wait(object) | Operation::SemWait(object) => self.wait(thread, object),
            Operation::SemInit(object, count) => self.init_semaphore(thread, object, count),
            Operation::Lock(object) => self.lock(thread, object),
            Operation::Unlock(object) => self.unlock(thread, object),
            Operation::ReadLock(object) => self.read_lock(thread, object),
            Operation::WriteLock(object) => self.write_lock(thread, object),
            Operation::ReadWriteUnlock(object) => self.read_write_unlock(thread, object),
            Operation::SpinLock(object) => self.spin_lock(thread, object),
            Operation::SpinUnlock(object) => self.spin_unlock(thread, object),
            Operation::Barrier(object, count) => self.meet(thread, object, count),
            Operation::CondWait(object, mutex) => self.wait_for_condition(thread, object, mutex),
            Operation::CondSignal(object) => self.signal_condition(thread, object),
            Operation::CondBroadcast(object) => self.broadcast_condition(thread, object),
            Operation::Once(object, length) => self.once(thread, object, length),
            Operation::Create(other) => self.create(thread, other),
            Operation::Join(other) => self.join(thread, other),
            Operation::Io(object, length) => self.io(thread, object, length),
            Operation::Sleep(length) => self.sleep(thread, length),
            Operation::SleepUntil(end) => self.sleep_until(thread, end),
            Operation::SleepNext(length) => self.sleep_next(thread, length),
            Operation::Release(edge) => self.release(thread, edge),
            Operation::Await(edge) => self.await_release(thread, edge),
            // `advance` handles these operations.
            Operation::Exec(_)
            | Operation::ExecIn(..)
            | Operation::Call(_)
            | Operation::Return
            | Operation::Held(..)
            | Operation::Freed(..) => Flow::On,
        }
    }

    pub(super) fn begin_run(&mut self, thread: u32) {
        if !M::DECIDES {
            if self.machine.follows_runs() {
                let actor = &mut self.actors[thread as usize];
                let (run, now) = (actor.next_run, self.machine.now());
                actor.computing = true;
                actor.next_run += 1;
                self.machine.begin_run(thread, run);
                if !self.repeats(thread) {
                    self.runs.begin(run, PointId(run), now);
                }
            }
            return;
        }
        self.vertex(thread, 1);
        let point = self.begin_step(thread);
        let repeats = self.repeats(thread);
        let actor = &mut self.actors[thread as usize];
        actor.computing = true;
        if repeats {
            self.echoes.push((point, actor.next_run));
        } else {
            self.runs.begin(actor.next_run, point, self.machine.now());
        }
        actor.next_run += 1;
    }

    pub(super) fn end_run(&mut self, thread: u32) {
        self.actors[thread as usize].computing = false;
        self.vertex(thread, -1);
        self.end_step(thread);
    }

    pub(super) fn has_trace(&self) -> bool {
        self.trace.is_some()
    }

    pub(super) fn first_run(&self, thread: u32) -> u32 {
        if self.machine.follows_runs() { self.runs.first_of(thread as usize) } else { 0 }
    }

    /// A run that another thread computes instead (`once`).
    pub(super) fn skip_run(&mut self, thread: u32) {
        self.actors[thread as usize].next_run += 1;
    }

    /// Begins the thread's next step: a new point below its present one, which becomes its present one.
    pub(super) fn begin_step(&mut self, thread: u32) -> PointId {
        let actor = &mut self.actors[thread as usize];
        if M::DECIDES {
            actor.point = self.forest.add(actor.point);
        }
        actor.point
    }

    /// Lets the thread compute for this length, at its present point, and then act.
    pub(super) fn take_time(&mut self, thread: u32, length: Ticks) {
        if M::COSTS {
            self.note_charge(thread, length);
        } else {
            self.note_end(thread, length.0);
        }
        self.machine.compute(thread, length.0);
    }

    /// A step of the thread ends after this long; if no step ends later, its end is the end of the run.
    pub(super) fn note_end(&mut self, thread: u32, length: u64) {
        if !M::DECIDES || self.is_background(thread) {
            return;
        }
        let point = self.actors[thread as usize].point;
        let time = self.machine.now().saturating_add(length);
        if time > self.end.time {
            self.end = Moment { time, point };
        } else if time == self.end.time {
            self.end.point = self.forest.common(self.end.point, point);
        }
    }

    /// The number of executing threads changes, decided by the thread's present point.
    pub(super) fn vertex(&mut self, thread: u32, change: i32) {
        if !M::DECIDES {
            return;
        }
        self.vertices.push(Vertex {
            time: Ticks(self.machine.now()),
            thread: ThreadId(thread),
            change,
            decided_by: self.actors[thread as usize].point,
        });
    }

    /// The thread's present moment.
    pub(super) fn here(&self, thread: u32) -> Moment {
        Moment { time: self.machine.now(), point: self.actors[thread as usize].point }
    }

    /// The point that decides a moment that needs both the thread's arrival and `cause`: the point of the later one, or
    /// if both have the same time, their common ancestor.
    pub(super) fn decide(&self, actor: &Actor, cause: Option<Moment>) -> PointId {
        match cause {
            Some(cause) if cause.time > actor.since => cause.point,
            Some(cause) if cause.time == actor.since => self.forest.common(actor.point, cause.point),
            _ => actor.point,
        }
    }

    /// Notes the time at which the thread reaches an operation in which it may have to wait.
    pub(super) fn arrive(&mut self, thread: u32) {
        let now = self.machine.now();
        let actor = &mut self.actors[thread as usize];
        if actor.stage == Stage::Going {
            actor.since = now;
        }
    }

    /// The thread, which has arrived before, passes its operation; it needed `cause` for that.
    pub(super) fn pass(&mut self, thread: u32, cause: Option<Moment>) -> Flow {
        if M::DECIDES {
            let point = self.decide(&self.actors[thread as usize], cause);
            self.actors[thread as usize].point = point;
        }
        self.go_on(thread)
    }

    /// The thread passes its operation. Only its own arrival decides when.
    pub(super) fn go_on(&mut self, thread: u32) -> Flow {
        self.note_step(thread, false);
        let actor = &mut self.actors[thread as usize];
        actor.stage = Stage::Going;
        actor.next += 1;
        Flow::On
    }

    pub(super) fn note_step(&mut self, thread: u32, begins: bool) {
        if let Some(trace) = &mut self.trace {
            let operation = self.actors[thread as usize].next;
            trace.push(Step { thread: ThreadId(thread), operation, begins });
        }
    }

    /// The waiting thread passes its operation because of `cause`, an action of the thread `by`. The waiting thread
    /// acts at the end of this instant's queue, as soon as it has a processor.
    pub(super) fn grant(&mut self, waiter: u32, cause: Moment, by: u32) {
        self.pass(waiter, Some(cause));
        self.wake(waiter, Some(by));
    }
}

impl Iterator for Simulation<'_> {
    type Item = Vertex;

    fn next(&mut self) -> Option<Vertex> {
        loop {
            if let Some(vertex) = self.vertices.get(self.given) {
                self.given += 1;
                return Some(*vertex);
            }
            let mut vertices = std::mem::take(&mut self.vertices);
            self.given = 0;
            self.next_instant(&mut vertices)?;
            self.vertices = vertices;
        }
    }
}
