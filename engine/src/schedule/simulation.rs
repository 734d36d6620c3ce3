//! The simulation itself: what each thread does next, and the vertices that come of it. What an operation does to
//! its object stands in the file named after the object.

use super::actor::{Actor, Flow, Moment, Stage};
use super::agenda::Agenda;
use super::barrier::Barrier;
use super::condition::Condition;
use super::mutex::Mutex;
use super::oddities::Oddities;
use super::once::OnceCell;
use super::queue::{Links, WaitQueue};
use super::read_write::ReadWrite;
use super::semaphore::Semaphore;
use super::spin::Spin;
use super::table::Table;
use super::wake::{Edge, edge_count};
use super::{Forest, PointId, Runs};
use crate::program::{Operation, Program, ProgramError, ThreadId};
use crate::report::Finding;
use crate::time::Ticks;

/// A change of the number of executing threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Vertex {
    /// When.
    pub time: Ticks,
    /// Which thread.
    pub thread: ThreadId,
    /// +1: it starts to use a processor; −1: it stops.
    pub change: i32,
    /// What decides when: if this point came earlier, so would the vertex.
    pub decided_by: PointId,
}

/// A program being scheduled on unlimited processors. Ask for one instant after the other with
/// [`Simulation::next_instant`], or collect the vertices as an iterator.
#[derive(Debug)]
pub struct Simulation<'a> {
    pub(super) program: &'a Program,
    pub(super) agenda: Agenda,
    pub(super) actors: Vec<Actor>,
    pub(super) links: Links,
    pub(super) forest: Forest,
    runs: Runs,
    end: Moment,
    vertices: Vec<Vertex>,
    given: usize,
    pub(super) semaphores: Table<Semaphore>,
    pub(super) mutexes: Table<Mutex>,
    pub(super) read_writes: Table<ReadWrite>,
    pub(super) spins: Table<Spin>,
    pub(super) barriers: Table<Barrier>,
    pub(super) conditions: Table<Condition>,
    pub(super) onces: Table<OnceCell>,
    pub(super) edges: Vec<Edge>,
    pub(super) joiners: Vec<WaitQueue>,
    pub(super) oddities: Oddities,
    trace: Option<Vec<Step>>,
}

/// An operation takes effect; in a trace, for tests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Step {
    pub(crate) thread: ThreadId,
    pub(crate) operation: u32,
    /// It only begins to wait for a condition: a signal before this is lost.
    pub(crate) begins: bool,
}

/// What a finished simulation leaves.
#[derive(Debug)]
pub struct Schedule {
    /// The deciding points.
    pub forest: Forest,
    /// Where and when each run of compute operations was.
    pub runs: Runs,
    /// For each thread, how many of its operations it has done; all, unless it waits for ever.
    pub done: Vec<usize>,
    /// When the last timed step ends.
    pub length: Ticks,
    /// What decides the end: if it came earlier, so would the end.
    pub end: PointId,
    /// Deadlocks and contradictions in the program.
    pub findings: Vec<Finding>,
    /// For tests: operations in the order in which they took effect, if asked for.
    pub(crate) trace: Vec<Step>,
}

impl<'a> Simulation<'a> {
    /// Ready to start.
    ///
    /// # Errors
    /// The program fails [`Program::check`].
    pub fn new(program: &'a Program) -> Result<Simulation<'a>, ProgramError> {
        program.check()?;
        let threads = program.threads.len();
        let objects = program.objects.len();
        let runs = Runs::of(program);
        let first = Actor {
            next: 0,
            point: PointId::START,
            since: 0,
            next_run: 0,
            stage: Stage::Going,
            computing: false,
        };
        let mut actors: Vec<Actor> =
            (0..threads).map(|thread| Actor { next_run: runs.first_of(thread), ..first }).collect();
        for operation in program.threads.iter().flat_map(|thread| &thread.operations) {
            if let Operation::Create(other) = operation {
                actors[other.0 as usize].stage = Stage::NotCreated;
            }
        }
        let mut agenda = Agenda::default();
        for (thread, actor) in actors.iter().enumerate() {
            if actor.stage == Stage::Going {
                agenda.soon(thread as u32);
            }
        }
        Ok(Simulation {
            program,
            agenda,
            actors,
            links: Links::new(threads),
            forest: Forest::with_capacity(runs.len()),
            runs,
            end: Moment { time: 0, point: PointId::START },
            vertices: Vec::new(),
            given: 0,
            semaphores: Table::new(objects),
            mutexes: Table::new(objects),
            read_writes: Table::new(objects),
            spins: Table::new(objects),
            barriers: Table::new(objects),
            conditions: Table::new(objects),
            onces: Table::new(objects),
            edges: vec![Edge::default(); edge_count(program)],
            joiners: vec![WaitQueue::default(); threads],
            oddities: Oddities::default(),
            trace: None,
        })
    }

    /// Keeps the order in which operations take effect, for tests.
    pub(crate) fn traced(mut self) -> Simulation<'a> {
        self.trace = Some(Vec::new());
        self
    }

    /// Goes on by one instant, replaces `vertices` by those of that instant and returns its time; `None` when nothing
    /// more happens.
    pub fn next_instant(&mut self, vertices: &mut Vec<Vertex>) -> Option<Ticks> {
        let now = self.agenda.next_instant()?;
        self.vertices.clear();
        while let Some(thread) = self.agenda.next_thread() {
            self.advance(thread);
        }
        std::mem::swap(vertices, &mut self.vertices);
        Some(Ticks(now))
    }

    /// The deciding points so far.
    pub fn forest(&self) -> &Forest {
        &self.forest
    }

    /// What is left when it is over; goes on to the end if it is not.
    pub fn finish(mut self) -> Schedule {
        let mut vertices = Vec::new();
        while self.next_instant(&mut vertices).is_some() {}
        let mut findings = self.oddities.findings();
        findings.extend(self.deadlock());
        Schedule {
            done: self.actors.iter().map(|actor| actor.next as usize).collect(),
            length: Ticks(self.end.time),
            end: self.end.point,
            findings,
            forest: self.forest,
            runs: self.runs,
            trace: self.trace.unwrap_or_default(),
        }
    }

    /// The thread acts until it computes or waits.
    fn advance(&mut self, thread: u32) {
        let operations = &self.program.threads[thread as usize].operations;
        loop {
            let actor = &mut self.actors[thread as usize];
            match operations.get(actor.next as usize).copied() {
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
                    if flow == Flow::Stop {
                        return;
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
            Operation::Io(_, length) | Operation::Sleep(length) => {
                self.actors[thread as usize].next += 1;
                self.begin_step(thread);
                self.take_time(thread, length);
                Flow::Stop
            }
            Operation::Release(edge) => self.release(thread, edge),
            Operation::Await(edge) => self.await_release(thread, edge),
            // `advance` deals with these.
            Operation::Exec(_)
            | Operation::ExecIn(..)
            | Operation::Call(_)
            | Operation::Return
            | Operation::Held(..)
            | Operation::Freed(..) => Flow::On,
        }
    }

    pub(super) fn begin_run(&mut self, thread: u32) {
        self.vertex(thread, 1);
        let point = self.begin_step(thread);
        let actor = &mut self.actors[thread as usize];
        actor.computing = true;
        self.runs.begin(actor.next_run, point, self.agenda.now());
        actor.next_run += 1;
    }

    pub(super) fn end_run(&mut self, thread: u32) {
        self.actors[thread as usize].computing = false;
        self.vertex(thread, -1);
    }

    /// A run that another thread computes instead (`once`).
    pub(super) fn skip_run(&mut self, thread: u32) {
        self.actors[thread as usize].next_run += 1;
    }

    /// The thread's next point, decided by its present one.
    fn begin_step(&mut self, thread: u32) -> PointId {
        let actor = &mut self.actors[thread as usize];
        actor.point = self.forest.add(actor.point);
        actor.point
    }

    /// The thread acts again after this long, at its present point.
    pub(super) fn take_time(&mut self, thread: u32, length: Ticks) {
        let point = self.actors[thread as usize].point;
        let time = self.agenda.now().saturating_add(length.0);
        if time > self.end.time {
            self.end = Moment { time, point };
        } else if time == self.end.time {
            self.end.point = self.forest.common(self.end.point, point);
        }
        self.agenda.after(length.0, thread);
    }

    /// The number of executing threads changes, decided by the thread's present point.
    pub(super) fn vertex(&mut self, thread: u32, change: i32) {
        self.vertices.push(Vertex {
            time: Ticks(self.agenda.now()),
            thread: ThreadId(thread),
            change,
            decided_by: self.actors[thread as usize].point,
        });
    }

    /// The thread's present moment.
    pub(super) fn here(&self, thread: u32) -> Moment {
        Moment { time: self.agenda.now(), point: self.actors[thread as usize].point }
    }

    /// What decides a moment that needs both the thread's arrival and `cause`: the later one, or at the same time
    /// what is above both.
    pub(super) fn decide(&self, actor: &Actor, cause: Option<Moment>) -> PointId {
        match cause {
            Some(cause) if cause.time > actor.since => cause.point,
            Some(cause) if cause.time == actor.since => self.forest.common(actor.point, cause.point),
            _ => actor.point,
        }
    }

    /// The thread comes to an operation in which it may have to wait.
    pub(super) fn arrive(&mut self, thread: u32) {
        let now = self.agenda.now();
        let actor = &mut self.actors[thread as usize];
        if actor.stage == Stage::Going {
            actor.since = now;
        }
    }

    /// The thread has got past its operation, for which it needed `cause`. It has arrived before.
    pub(super) fn pass(&mut self, thread: u32, cause: Option<Moment>) -> Flow {
        let point = self.decide(&self.actors[thread as usize], cause);
        self.actors[thread as usize].point = point;
        self.go_on(thread)
    }

    /// The thread has done an operation for which it never waits.
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

    /// A waiting thread gets past its operation because of `cause`, and acts at the end of this instant's queue.
    pub(super) fn grant(&mut self, waiter: u32, cause: Moment) {
        self.pass(waiter, Some(cause));
        self.agenda.soon(waiter);
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
