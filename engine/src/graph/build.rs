//! From a program to its activity graph. The schedule on unlimited processors gives the order in which operations take
//! effect, and so which thread lets which one pass.
//!
//! Calls, returns and the marks of recorded locks are no vertices: they take no time and wait for no thread. An operation
//! whose cause is an earlier one of the same thread (a lock that the thread itself freed last) gets no wake edge. The order
//! of the thread implies it, and an edge around the operations in between would be no path of the program. A joined thread
//! reaches the sink only through the thread that joins it: a way of its own would be a part of the same path.

use super::activity::{Activity, ActivityGraph, ActivityKind, VertexId};
use super::objects::{Barrier, Condition, Counts, Exclusive, Latch, ReadWrite};
use crate::program::{EdgeId, FunctionRef, ObjectId, Operation, Program, RunBreaks, ThreadId};
use crate::schedule::{Charge, Delay, PointId, Schedule, Step};
use crate::time::Ticks;
use rustc_hash::{FxHashMap, FxHashSet};

/// Accessor of the builder's locks of one kind.
type Locks<'a> = for<'b> fn(&'b mut Builder<'a>) -> &'b mut FxHashMap<ObjectId, Exclusive>;
type OfThread<'a> = Box<dyn Iterator<Item = Option<(PointId, Ticks)>> + 'a>;

/// A thread's progress through its operations.
pub(super) struct Walker<'a> {
    /// The thread's last vertex; `None` before it starts.
    pub(super) at: Option<VertexId>,
    /// Index of the thread's next operation.
    pub(super) next: usize,
    pub(super) stack: Vec<FunctionRef>,
    breaks: RunBreaks,
    runs: OfThread<'a>,
    /// Whether the thread computes the body of its present `once` itself.
    computes: bool,
    /// The vertex at which the condition that the thread waits for was signalled.
    signalled: Option<VertexId>,
    /// The vertex at which the thread's timer first ends, and the time from there to the timer's last end.
    timer: Option<(VertexId, Ticks)>,
    /// Set when the thread was woken to try its operation again: the waker's vertex, and the latency.
    pub(super) retries: Option<(VertexId, Ticks)>,
    /// The thread was woken to continue at the operation with this index, after this latency; the steps before it have yet to
    /// be walked.
    pub(super) comes: Option<(usize, Ticks)>,
}

pub(super) struct Builder<'a> {
    pub(super) program: &'a Program,
    schedule: &'a Schedule,
    delays: &'a [Delay],
    /// For a thread and operation: time that the thread computes there to wake other threads.
    pub(super) charges: FxHashMap<(u32, u32), Ticks>,
    pub(super) graph: ActivityGraph,
    pub(super) walkers: Vec<Walker<'a>>,
    semaphores: FxHashMap<ObjectId, Counts>,
    mutexes: FxHashMap<ObjectId, Exclusive>,
    spins: FxHashMap<ObjectId, Exclusive>,
    read_writes: FxHashMap<ObjectId, ReadWrite>,
    conditions: FxHashMap<ObjectId, Condition>,
    onces: FxHashMap<ObjectId, Latch>,
    barriers: FxHashMap<ObjectId, Barrier>,
    edges: FxHashMap<EdgeId, Latch>,
    /// Last vertices of joined threads.
    joined: FxHashSet<VertexId>,
}

impl<'a> Builder<'a> {
    pub(super) fn new(
        program: &'a Program,
        schedule: &'a Schedule,
        delays: &'a [Delay],
        charges: &[Charge],
        operations: usize,
    ) -> Builder<'a> {
        let charges = charges.iter().map(|charge| ((charge.thread.0, charge.operation), charge.length));
        let walkers = (0..program.threads.len()).map(|thread| Walker {
            at: None,
            next: 0,
            stack: Vec::new(),
            breaks: RunBreaks::default(),
            runs: Box::new(schedule.runs.of_thread(ThreadId(thread as u32))),
            computes: false,
            signalled: None,
            timer: None,
            retries: None,
            comes: None,
        });
        let mut builder = Builder {
            program,
            schedule,
            delays,
            charges: charges.collect(),
            graph: ActivityGraph::with_capacity(operations),
            walkers: walkers.collect(),
            semaphores: FxHashMap::default(),
            mutexes: FxHashMap::default(),
            spins: FxHashMap::default(),
            read_writes: FxHashMap::default(),
            conditions: FxHashMap::default(),
            onces: FxHashMap::default(),
            barriers: FxHashMap::default(),
            edges: FxHashMap::default(),
            joined: FxHashSet::default(),
        };
        let source = builder.graph.close();
        let mut created = vec![false; program.threads.len()];
        for thread in program.created() {
            created[thread.0 as usize] = true;
        }
        for (thread, created) in created.into_iter().enumerate() {
            if !created {
                builder.start(thread, source);
            }
        }
        builder
    }

    fn start(&mut self, thread: usize, from: VertexId) {
        self.edge(thread, from, ActivityKind::Start, Ticks(0), None);
        self.walkers[thread].at = Some(self.graph.close());
        self.come_if_there(thread);
    }

    /// Walks all steps and latencies in order and returns the graph.
    pub(super) fn graph(mut self) -> ActivityGraph {
        let (schedule, delays) = (self.schedule, self.delays);
        let mut delays = delays.iter().peekable();
        for (place, step) in schedule.trace.iter().enumerate() {
            while let Some(delay) = delays.next_if(|delay| delay.after <= place) {
                self.delay(delay);
            }
            self.step(*step);
        }
        for delay in delays {
            self.delay(delay);
        }
        self.finish()
    }

    /// Adds an edge of the thread's next operation.
    pub(super) fn edge(
        &mut self,
        thread: usize,
        tail: VertexId,
        kind: ActivityKind,
        length: Ticks,
        function: Option<FunctionRef>,
    ) {
        let operation = self.walkers[thread].next as u32;
        let thread = ThreadId(thread as u32);
        // `edge_into` ignores the head: it is the vertex closed next.
        self.graph.edge_into(Activity { tail, head: tail, length, kind, thread, operation, function });
    }

    /// Ends the thread's next operation with a new vertex, after the vertices `causes`.
    fn pass(&mut self, thread: usize, causes: &[VertexId]) -> VertexId {
        let top = self.walkers[thread].stack.last().copied();
        let Some(at) = self.walkers[thread].at else {
            // Never happens: a thread acts only after its start.
            return VertexId(0);
        };
        let retries = self.walkers[thread].retries.take();
        self.edge(thread, at, ActivityKind::Step, Ticks(0), top);
        if let Some((from, length)) = retries {
            self.edge(thread, from, ActivityKind::Delay, length, top);
        }
        for cause in causes {
            if self.graph.thread_at(*cause) != Some(ThreadId(thread as u32)) {
                self.edge(thread, *cause, ActivityKind::Wake, Ticks(0), top);
            }
        }
        self.arrive(thread)
    }

    /// The thread passes after this cause. Without one, the object has noted it as early: it passes when the cause is walked.
    fn pass_once_known(&mut self, thread: usize, cause: Option<VertexId>) {
        if let Some(cause) = cause {
            self.pass(thread, &[cause]);
        }
    }

    /// Lets all these threads pass, because of one operation of another thread.
    fn pass_all(&mut self, threads: Vec<usize>, cause: VertexId) {
        for thread in threads {
            self.pass(thread, &[cause]);
        }
    }

    /// Closes the next vertex as the thread's own.
    fn arrive(&mut self, thread: usize) -> VertexId {
        let vertex = self.graph.close();
        let walker = &mut self.walkers[thread];
        walker.at = Some(vertex);
        walker.next += 1;
        self.come_if_there(thread);
        vertex
    }

    /// Walks through the thread's operations before `operation`; none of them can wait for another thread.
    pub(super) fn reach(&mut self, thread: usize, operation: usize) {
        while self.walkers[thread].next < operation {
            let Some(operation) =
                self.program.threads[thread].operations.get(self.walkers[thread].next).copied()
            else {
                return;
            };
            self.look_for_run(thread, &operation);
            self.alone(thread, operation);
        }
    }

    fn look_for_run(&mut self, thread: usize, operation: &Operation) {
        let walker = &mut self.walkers[thread];
        if walker.breaks.starts_run(operation) {
            walker.computes = walker.runs.next().flatten().is_some();
        }
    }

    /// Adds an operation that concerns no other thread.
    fn alone(&mut self, thread: usize, operation: Operation) {
        let top = self.walkers[thread].stack.last().copied();
        let (kind, length, function) = match operation {
            Operation::Call(function) => {
                self.walkers[thread].stack.push(function);
                self.walkers[thread].next += 1;
                return;
            }
            Operation::Return => {
                self.walkers[thread].stack.pop();
                self.walkers[thread].next += 1;
                return;
            }
            Operation::Held(..) | Operation::Freed(..) => {
                self.walkers[thread].next += 1;
                return;
            }
            Operation::Exec(length) => (ActivityKind::Compute, length, top),
            Operation::ExecIn(function, length) => (ActivityKind::Compute, length, Some(function)),
            Operation::Io(_, length) => (ActivityKind::Io, length, top),
            Operation::Sleep(length) => (ActivityKind::Sleep, length, top),
            Operation::SleepUntil(end) => {
                if let Some(at) = self.walkers[thread].at {
                    self.edge(thread, at, ActivityKind::Step, Ticks(0), top);
                    self.edge(thread, VertexId(0), ActivityKind::Sleep, end, top);
                    self.arrive(thread);
                }
                return;
            }
            Operation::SleepNext(length) => {
                if let Some(at) = self.walkers[thread].at {
                    match self.walkers[thread].timer {
                        Some((first, since)) => {
                            let since = Ticks(since.0.saturating_add(length.0));
                            self.edge(thread, at, ActivityKind::Step, Ticks(0), top);
                            self.edge(thread, first, ActivityKind::Sleep, since, top);
                            self.arrive(thread);
                            self.walkers[thread].timer = Some((first, since));
                        }
                        None => {
                            self.edge(thread, at, ActivityKind::Sleep, length, top);
                            let first = self.arrive(thread);
                            self.walkers[thread].timer = Some((first, Ticks(0)));
                        }
                    }
                }
                return;
            }
            _ => (ActivityKind::Step, Ticks(0), top),
        };
        let length = self.charged(thread, length);
        if let Some(at) = self.walkers[thread].at {
            self.edge(thread, at, kind, length, function);
            self.arrive(thread);
        }
    }

    /// Adds an operation to the graph at the time at which the operation takes effect.
    fn step(&mut self, step: Step) {
        let (thread, number) = (step.thread.0 as usize, step.operation as usize);
        self.reach(thread, number);
        let Some(operation) = self.program.threads[thread].operations.get(number).copied() else { return };
        if step.begins {
            return self.begin_to_wait(thread, operation);
        }
        self.look_for_run(thread, &operation);
        match operation {
            Operation::Signal(object) | Operation::SemPost(object) => self.give(thread, object, 1),
            Operation::SemInit(object, count) => {
                self.semaphores.entry(object).or_default().clear();
                self.give(thread, object, count);
            }
            Operation::Wait(object) | Operation::SemWait(object) => {
                let given = self.semaphores.entry(object).or_default().take(thread);
                self.pass_once_known(thread, given);
            }
            Operation::Lock(object) => self.take(thread, object, |of| &mut of.mutexes),
            Operation::Unlock(object) => self.free(thread, object, |of| &mut of.mutexes),
            Operation::SpinLock(object) => self.take(thread, object, |of| &mut of.spins),
            Operation::SpinUnlock(object) => self.free(thread, object, |of| &mut of.spins),
            Operation::ReadLock(object) => {
                let written = self.read_writes.entry(object).or_default().read();
                self.pass(thread, written.as_slice());
            }
            Operation::WriteLock(object) => {
                let left = self.read_writes.entry(object).or_default().write(thread);
                self.pass(thread, &left);
            }
            Operation::ReadWriteUnlock(object) => {
                let vertex = self.pass(thread, &[]);
                self.read_writes.entry(object).or_default().leave(thread, vertex);
            }
            Operation::Barrier(object, count) => self.meet(thread, object, count),
            Operation::CondWait(_, mutex) => {
                let signalled = self.walkers[thread].signalled.take();
                let freed = self.mutexes.entry(mutex).or_default().take(thread);
                let causes: Vec<VertexId> = signalled.into_iter().chain(freed).collect();
                self.pass(thread, &causes);
            }
            Operation::CondSignal(object) => self.signal(thread, object, 1),
            Operation::CondBroadcast(object) => self.signal(thread, object, usize::MAX),
            Operation::Once(object, length) => self.once(thread, object, length),
            Operation::Create(other) => {
                let vertex = self.pass(thread, &[]);
                if self.walkers[other.0 as usize].at.is_none() {
                    self.start(other.0 as usize, vertex);
                }
            }
            Operation::Join(other) => {
                // The joined thread has ended, since the schedule let the joining thread pass.
                let joined = other.0 as usize;
                self.reach(joined, self.schedule.done[joined]);
                let end = self.walkers[joined].at;
                self.joined.extend(end);
                self.pass(thread, end.as_slice());
            }
            Operation::Release(edge) => {
                let vertex = self.pass(thread, &[]);
                let early = self.edges.entry(edge).or_default().open(vertex);
                self.pass_all(early, vertex);
            }
            Operation::Await(edge) => {
                let released = self.edges.entry(edge).or_default().take(thread);
                self.pass_once_known(thread, released);
            }
            Operation::Exec(_)
            | Operation::ExecIn(..)
            | Operation::Call(_)
            | Operation::Return
            | Operation::Io(..)
            | Operation::Sleep(_)
            | Operation::SleepUntil(_)
            | Operation::SleepNext(_)
            | Operation::Held(..)
            | Operation::Freed(..) => self.alone(thread, operation),
        }
    }

    /// The thread begins to wait for a condition and frees the mutex.
    fn begin_to_wait(&mut self, thread: usize, operation: Operation) {
        if let Operation::CondWait(condition, mutex) = operation
            && let Some(at) = self.walkers[thread].at
        {
            self.mutexes.entry(mutex).or_default().give_back(thread, at);
            self.conditions.entry(condition).or_default().wait(thread);
        }
    }

    fn give(&mut self, thread: usize, object: ObjectId, count: u32) {
        let vertex = self.pass(thread, &[]);
        let early = self.semaphores.entry(object).or_default().give(vertex, count);
        self.pass_all(early, vertex);
    }

    /// Lets the thread take a lock, after the thread that freed it last.
    fn take(&mut self, thread: usize, object: ObjectId, locks: Locks<'a>) {
        let freed = locks(self).entry(object).or_default().take(thread);
        self.pass(thread, freed.as_slice());
    }

    /// The thread releases a lock.
    fn free(&mut self, thread: usize, object: ObjectId, locks: Locks<'a>) {
        let vertex = self.pass(thread, &[]);
        locks(self).entry(object).or_default().give_back(thread, vertex);
    }

    /// The thread signals a condition: up to `most` waiting threads pass after it, once each has its mutex.
    fn signal(&mut self, thread: usize, object: ObjectId, most: usize) {
        let vertex = self.pass(thread, &[]);
        for waiter in self.conditions.entry(object).or_default().signal(most) {
            self.walkers[waiter].signalled = Some(vertex);
        }
    }

    /// Threads take effect one after the other at a barrier; when the last one does, all of them get their edges.
    fn meet(&mut self, thread: usize, object: ObjectId, count: u32) {
        let met = &mut self.barriers.entry(object).or_default().met;
        met.push(thread);
        if met.len() < count as usize {
            return;
        }
        let met = std::mem::take(met);
        if let [only] = met[..] {
            self.pass(only, &[]);
            return;
        }
        // All wait for all: one vertex in the middle replaces an edge for every pair.
        for thread in &met {
            let top = self.walkers[*thread].stack.last().copied();
            if let Some(at) = self.walkers[*thread].at {
                self.edge(*thread, at, ActivityKind::Step, Ticks(0), top);
            }
        }
        let middle = self.graph.close();
        for thread in met {
            let top = self.walkers[thread].stack.last().copied();
            self.edge(thread, middle, ActivityKind::Wake, Ticks(0), top);
            self.arrive(thread);
        }
    }

    fn once(&mut self, thread: usize, object: ObjectId, length: Ticks) {
        if !self.walkers[thread].computes {
            let done = self.onces.entry(object).or_default().take(thread);
            return self.pass_once_known(thread, done);
        }
        let top = self.walkers[thread].stack.last().copied();
        let Some(at) = self.walkers[thread].at else { return };
        let length = self.charged(thread, length);
        self.edge(thread, at, ActivityKind::Compute, length, top);
        let done = self.arrive(thread);
        let early = self.onces.entry(object).or_default().open(done);
        self.pass_all(early, done);
    }

    fn finish(mut self) -> ActivityGraph {
        for thread in 0..self.walkers.len() {
            self.reach(thread, self.schedule.done[thread]);
        }
        for thread in 0..self.walkers.len() {
            if self.program.threads[thread].background.is_some() {
                continue;
            }
            if let Some(at) = self.walkers[thread].at.filter(|at| !self.joined.contains(at)) {
                self.edge(thread, at, ActivityKind::End, Ticks(0), None);
            }
        }
        // Without any thread, the source is the sink.
        if self.graph.vertices() > 1 {
            self.graph.close();
        }
        self.graph.findings = self.schedule.findings.clone();
        self.graph.scheduled = Some(self.schedule.length);
        self.graph
    }
}
