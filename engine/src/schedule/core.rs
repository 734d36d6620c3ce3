//! The state of a run that operations on every kind of object share: threads, machine, deciding points, and what the run
//! has shown so far.

use super::actor::{Actor, Flow, Moment, Stage};
use super::background::Backgrounds;
use super::machine::Machine;
use super::objects::queue::Links;
use super::outcome::consistency::ConsistencyWarnings;
use super::outcome::result::{Charge, Delay, Latency, Step, Vertex};
use super::outcome::usage::Usage;
use super::{Forest, PointId, Runs};
use crate::program::{ObjectId, Program, ThreadId};
use crate::time::Ticks;

/// The shared state of a run on a machine.
#[derive(Debug)]
pub(super) struct Core<'a, M> {
    /// The program, for its names.
    pub(super) program: &'a Program,
    pub(super) machine: M,
    pub(super) actors: Vec<Actor>,
    pub(super) links: Links,
    pub(super) forest: Forest,
    pub(super) runs: Runs,
    pub(super) end: Moment,
    pub(super) vertices: Vec<Vertex>,
    pub(super) warnings: ConsistencyWarnings,
    pub(super) usage: Usage,
    pub(super) trace: Option<Vec<Step>>,
    /// Steps other than computing, in order of their points, if [`Machine::COSTS`].
    pub(super) latencies: Vec<Latency>,
    /// Costs of waking other threads, with the runs that compute these costs.
    pub(super) charges: Vec<Charge>,
    pub(super) backgrounds: Backgrounds,
    /// Repeated runs, with the number of the run that each repeats, if [`Machine::COSTS`].
    pub(super) echoes: Vec<(PointId, u32)>,
    /// Latencies of woken threads, if a trace is kept.
    pub(super) delays: Vec<Delay>,
}

impl<'a, M: Machine> Core<'a, M> {
    /// The state before the start; `is_created`: whether another thread creates this one.
    pub(super) fn new(
        program: &'a Program,
        machine: M,
        trace: Option<Vec<Step>>,
        is_created: impl Fn(u32) -> bool,
    ) -> Core<'a, M> {
        let threads = program.threads.len();
        let actor = |thread| Actor {
            next: 0,
            point: PointId::START,
            since: 0,
            next_run: 0,
            stage: if is_created(thread) { Stage::NotCreated } else { Stage::Going },
            computing: false,
            timed: false,
        };
        Core {
            program,
            machine,
            actors: (0..threads as u32).map(actor).collect(),
            links: Links::new(threads),
            forest: Forest::with_capacity(0),
            runs: Runs::default(),
            end: Moment { time: 0, point: PointId::START },
            vertices: Vec::new(),
            warnings: ConsistencyWarnings::default(),
            usage: Usage::of(if M::DECIDES { 0 } else { program.objects.len() }),
            trace,
            latencies: Vec::new(),
            charges: Vec::new(),
            backgrounds: Backgrounds::of(program),
            echoes: Vec::new(),
            delays: Vec::new(),
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
                if !self.backgrounds.repeats(thread) {
                    self.runs.begin(run, PointId(run), now);
                }
            }
            return;
        }
        self.vertex(thread, 1);
        let point = self.begin_step(thread);
        let repeats = self.backgrounds.repeats(thread);
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
        if !M::DECIDES || self.backgrounds.is_background(thread) {
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

    /// At the end of its repeated operations, a background thread goes back to their start.
    pub(super) fn begin_again(&mut self, thread: u32) {
        // A trace shows recorded operations only, and on unlimited processors repeats change no time.
        if self.trace.is_some() || (M::DECIDES && !M::COSTS) {
            return;
        }
        let now = self.machine.now();
        let Some(start) = self.backgrounds.begin_again(thread, &self.actors, now) else { return };
        if self.actors[thread as usize].computing {
            self.end_run(thread);
        }
        let first = if self.machine.follows_runs() { self.runs.first_of(thread as usize) } else { 0 };
        let actor = &mut self.actors[thread as usize];
        actor.next = start.operation;
        actor.next_run = first.saturating_add(start.runs_before);
    }

    /// A lock is taken.
    #[inline]
    pub(super) fn note_taken(&mut self, object: ObjectId) {
        if !M::DECIDES {
            self.usage.taken(object, self.machine.now());
        }
    }

    /// Notes that a thread that held the lock released it.
    #[inline]
    pub(super) fn note_given_back(&mut self, object: ObjectId) {
        if !M::DECIDES {
            self.usage.given_back(object, self.machine.now());
        }
    }

    /// Notes that the thread released a lock that it does not hold.
    pub(super) fn note_not_held(&mut self, thread: u32, object: ObjectId) {
        self.warnings.not_held(self.program, thread, self.actors[thread as usize].next, object);
    }
}
