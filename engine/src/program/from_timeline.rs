//! Makes a program from a timeline: what the threads do, without scheduling. Computing is the time in `Running` intervals
//! only, and waiting for a CPU leaves no trace.
//!
//! | timeline | program |
//! |---|---|
//! | `Running`, spinning ([`super::spinning::spins`]) | `await`, and a `release` in the thread that ended the spinning |
//! | else `Running` | `exec` of that length without the known cost of probe hits in it, cut where the function stack changes or another thread is woken |
//! | `Runnable` | nothing |
//! | `Blocked`, ended by a thread of the recording | `await` here, `release` there; by a message from another host, also `io` with the time that it was under way |
//! | `Blocked`, ended by anything else | `io` with the measured latency and the kind of waker; `sleep` for a sleep, and for a futex call that timed out; `sleep_next` for a sleep until a time, and for a repeating timer |
//! | `Blocked` until a time limit, and again for the same thing | nothing; if it ended for another thread's work and not for time, `await`, and a `release` in that thread ([`super::polls`]) |
//! | `Blocked` at the window's end | nothing: it is unknown what it waits for |
//! | `Unknown` | `io` on device `unknown`: never compute, counted in [`Trust::unknown_ns`]; nothing if nothing follows |
//! | first waking of a new thread | `create` |
//!
//! **Deadlock-free by construction.** Number each operation by the event that made it. A `release` or `create` has the number
//! of the waking or fork. An `await` has that of its own thread's next event, which is later than the waking. Within a thread
//! the numbers never fall, because steps and intervals were written in order of events. So every dependency between threads
//! goes from a smaller number to a larger one, and within a thread never back. Executing operations in order of their numbers
//! satisfies all dependencies. Each edge has one release and one await: a wake-up ends at most one wait, and a thread is
//! created at most once. This does not need a complete recording, so it holds for lossy ones, too.

mod between;
mod marks;
mod write;

use self::between::{Between, Event};
use super::background::Lifetime;
use super::lock_replay::{Begin, DeadEnd, ForcedReplay, Plan};
use super::machine::machine_of;
use super::machine::placement::Moves;
use super::naming::names;
use super::notices::{self, ProbeCost};
use super::polls::{Poll, Polls};
use super::sampled::sampled_code::SampledCode;
use super::sampled::ticks::{Probes, Ticking};
use super::spinning::spins::Spins;
use super::{EdgeId, FunctionRef, Move, ObjectId, Operation, Program, Samples, Thread, ThreadId};
use crate::event::{FunctionFact, FunctionId};
use crate::finding::Finding;
use crate::time::{Ticks, Timestamp};
use crate::timeline::{
    self, Birth, External, ProbeTime, State, Step, StepKind, Timeline, Wait, WaitReason, Wake,
};
use rustc_hash::{FxHashMap, FxHashSet};
use std::ops::Range;

/// The program of a timeline. `verify` simulates a program and reports a deadlock. See [`crate::translation::from_timeline`].
pub(crate) fn from_timeline_with(
    timeline: &Timeline,
    verify: &dyn Fn(&Program) -> Option<DeadEnd>,
) -> Program {
    let machine = machine_of::machine(timeline);
    let sampled = SampledCode::of(timeline);
    let spins = Spins::of(timeline, &sampled);
    let mut forced = ForcedReplay::default();
    let mut deadlock = None;
    let mut attempts = 0;
    loop {
        let (mut program, simulates, edges) = translate(timeline, &forced, &sampled, &spins);
        program.machine = Some(machine.clone());
        // Without simulated operations no thread can be stuck.
        let stuck = if simulates && !forced.is_all() { verify(&program) } else { None };
        let Some(stuck) = stuck else {
            program.findings.extend(deadlock.map(|stuck| Finding::SimulatedDeadlock { stuck }));
            return with_recorded(program, timeline, &sampled, &spins);
        };
        attempts += 1;
        // The first explanation that is new is tried: a wrong count of a condition variable, a lock of the kernel, a lock.
        let is_assumed =
            forced.keep_as_recorded(timeline, &stuck.objects) || forced.cut(timeline, &edges, &stuck);
        if !is_assumed && !forced.add(&stuck.objects) || attempts == MOST_ATTEMPTS {
            forced = ForcedReplay::everything();
        }
        if !is_assumed {
            deadlock.get_or_insert(stuck.threads);
        }
    }
}

/// Adds recorded objects and waits of the timeline to the program, and findings about what the timeline does not show.
fn with_recorded(mut program: Program, timeline: &Timeline, sampled: &SampledCode, spins: &Spins) -> Program {
    let threads: FxHashMap<u32, ThreadId> =
        lived(timeline).zip(0..).map(|((index, _), number)| (index, ThreadId(number))).collect();
    let (recorded, last) =
        super::recorded::of(timeline, &program, &names::functions_used(timeline), &threads);
    program.recorded = recorded;
    let (lines, facts) = super::spinning::shared_lines::of(timeline, sampled, &program).into_iter().unzip();
    program.recorded.lines = lines;
    program.recorded.support = super::sampled::support_work::of(timeline, sampled, &program);
    super::traffic::add(&mut program, timeline, &spins.mpi.launchers);
    program.recorded.others = super::machine::others::of(timeline.others.as_ref());
    program.recorded.children = super::machine::others::children(timeline.others.as_ref());
    let length_ns = timeline.end.0.saturating_sub(timeline.start.0);
    super::answers::name(&mut program, length_ns, timeline.wakeups.len());
    program.recorded.in_kernel = super::sampled::kernel_share::of(timeline, &program);
    let grows = program.recorded.support.iter().find(|work| work.grows()).map(super::SupportWork::share);
    program.findings.extend(grows.map(|share| Finding::KernelWorkGrows { share }));
    program.machine.iter_mut().for_each(|machine| machine.lines.clone_from(&facts));
    super::sampled::lock_work::add(timeline, &mut program);
    for (object, waited_ns) in last.waited {
        let of_lock = program.locks.iter_mut().find(|fact| fact.object.0 == object);
        if let Some(fact) = of_lock {
            fact.waited = Ticks(fact.waited.0.saturating_add(Ticks::from_ns(waited_ns).0));
        }
    }
    program.findings.extend(last.deadlock);
    program.findings.extend(super::recorded::unseen(timeline, &program.recorded));
    program.findings.extend(notices::replayed(timeline, spins));
    program.findings.extend(super::spinning::busy_wait::finding(timeline, &program, &spins.mpi));
    program
}

fn lived(timeline: &Timeline) -> impl Iterator<Item = (u32, &timeline::Thread)> {
    (0u32..).zip(&timeline.threads).filter(|(_, thread)| thread.has_lived())
}

/// After this many deadlocks in simulation, everything stays as recorded.
const MOST_ATTEMPTS: usize = 8;

/// Translates the timeline. Returns three things: the program with all operations simulated that can be, except forced
/// replays; whether it has simulated operations; and the edges of wake-ups.
fn translate(
    timeline: &Timeline,
    forced: &ForcedReplay,
    sampled: &SampledCode,
    spins: &Spins,
) -> (Program, bool, Vec<Option<EdgeId>>) {
    let lived = || lived(timeline);
    let threads: FxHashMap<u32, ThreadId> =
        lived().zip(0..).map(|((index, _), number)| (index, ThreadId(number))).collect();
    let plan = Plan::of(timeline, &threads, forced);
    let mut translator = Translator::new(timeline, threads, plan, sampled, spins);
    translator.name_edges();
    // The plan's first operations are given to a thread without a creator, since such a thread starts at time 0.
    let beginner = lived().find(|(_, thread)| !matches!(thread.birth, Birth::By(_))).map(|(index, _)| index);
    let names = names::threads(lived().map(|(_, thread)| thread), &timeline.hosts);
    let processes = names::processes(&timeline.threads, &timeline.hosts);
    let all: Vec<&timeline::Thread> = lived().map(|(_, thread)| thread).collect();
    let placements = super::machine::own_cpus::placements(timeline, all.iter().copied());
    for (((index, thread), name), (nice, cpus)) in lived().zip(names).zip(placements) {
        let first = if beginner == Some(index) { translator.plan.first.clone() } else { Vec::new() };
        let (operations, moves) = translator.thread(index, thread, first);
        let process = processes.get(&thread.pid).cloned();
        let made = Thread { name, operations, process, moves, nice, cpus, background: None };
        translator.program.threads.push(made);
    }
    let cost = ProbeCost { probe_ns: translator.probe_ns, ran_ns: translator.ran_ns };
    translator.program.findings.extend(notices::all(timeline, &cost, translator.shortened));
    translator.program.findings.extend(translator.plan.findings.iter().cloned());
    if !translator.samples.is_empty() || !timeline.stacks.is_empty() {
        translator.program.samples = std::mem::take(&mut translator.samples);
    }
    let lives = all.iter().map(|thread| Lifetime {
        pid: thread.pid,
        tid: thread.tid,
        died: thread.died,
        joined_last: super::recorded::ends_joining(timeline, thread),
        launches: spins.mpi.launchers.binary_search(&thread.pid).is_ok(),
    });
    super::background::find(&mut translator.program, &lives.collect::<Vec<_>>());
    super::stopped_timers::take_out(&mut translator.program, timeline, &all);
    super::own_clock::take_out(&mut translator.program, &all);
    (translator.program, translator.plan.simulates, translator.plan.edges)
}

struct Translator<'a> {
    timeline: &'a Timeline,
    program: Program,
    /// Index in the timeline → index in the program.
    threads: FxHashMap<u32, ThreadId>,
    functions: FxHashMap<FunctionId, FunctionRef>,
    objects: FxHashMap<&'static str, ObjectId>,
    /// How recorded synchronization operations become operations of the program.
    plan: Plan,
    created: Vec<bool>,
    /// Ticks that may still be added to the sum of all lengths.
    left: u64,
    shortened: bool,
    /// Running time of all threads, and the part of it that probe hits took, ns.
    ran_ns: u64,
    probe_ns: u64,
    samples: Samples,
    sampled: &'a SampledCode,
    spins: &'a Spins,
    polls: Polls,
    /// Index of the first edge that ends spinning. After these edges come those that end polling.
    first_spin: u32,
    /// Index of the first spin lock that is known from samples only.
    first_spin_lock: u32,
}

/// The operations of one thread while they are written.
#[derive(Default)]
struct Script<'a> {
    operations: Vec<Operation>,
    /// Computing since the last operation, ns.
    compute_ns: u64,
    /// Unknown or cut time after that computing, ns; written only if something follows.
    unknown_ns: u64,
    /// Unknown or cut time before `compute_ns`, ns.
    unknown_before_ns: u64,
    /// Functions on the stack, and whether each was written as a call.
    stack: Vec<(FunctionId, bool)>,
    open: FxHashMap<FunctionId, u32>,
    /// Open recorded operations and spinning; while there are any, running time is not computing.
    muted: u32,
    /// Probe hits in running stretches to come; below, time of the hits so far, ns.
    probes: ProbeTime<'a>,
    probe_ns: u64,
    /// How long the thread has run so far, probe hits included, ns.
    ran_ns: u64,
    /// The CPUs on which the thread computed.
    moves: Moves,
    ticks: Ticking<'a>,
    /// End of the last wait for a point in time.
    deadline: Option<u64>,
}

impl<'a> Translator<'a> {
    /// A translator before the first thread: functions have their numbers, and facts of the timeline are in the program.
    fn new(
        timeline: &'a Timeline,
        threads: FxHashMap<u32, ThreadId>,
        plan: Plan,
        sampled: &'a SampledCode,
        spins: &'a Spins,
    ) -> Translator<'a> {
        let polls = Polls::of(timeline, &plan);
        let mut numbers = names::functions_used(timeline);
        // Functions on sampled stacks only come after all others.
        let also: Vec<FunctionId> =
            sampled.functions.iter().copied().filter(|id| numbers.binary_search(id).is_err()).collect();
        numbers.extend(also);
        let known: Vec<FunctionFact> = timeline.functions.iter().chain(&sampled.facts).cloned().collect();
        let mut translator = Translator {
            timeline,
            threads,
            functions: FxHashMap::default(),
            program: Program {
                locks: plan.facts.clone(),
                functions: names::functions(
                    &numbers,
                    &known,
                    [&timeline.probes_removed, &timeline.partly_probed],
                ),
                trust: notices::trust(timeline),
                findings: timeline.findings.clone(),
                objects: plan.names.clone(),
                overhead: timeline.overhead,
                ..Program::default()
            },
            plan,
            objects: FxHashMap::default(),
            created: vec![false; timeline.threads.len()],
            left: Ticks::MAX_TOTAL,
            shortened: false,
            ran_ns: 0,
            probe_ns: 0,
            samples: Samples {
                rate_hz: timeline.sampling.map_or(0, |sampling| sampling.rate_hz),
                stacks: sampled.stacks().to_vec(),
                ..Samples::default()
            },
            sampled,
            spins,
            polls,
            first_spin: 0,
            first_spin_lock: 0,
        };
        let only_sampled: FxHashSet<FunctionId> = sampled.facts.iter().map(|fact| fact.id).collect();
        for (function, number) in (0..).map(FunctionRef).zip(numbers) {
            translator.functions.insert(number, function);
            if let Some(function) = translator.program.functions.get_mut(function.0 as usize) {
                function.sampled = only_sampled.contains(&number);
            }
        }
        translator.samples.places = sampled.places(&translator.functions);
        translator
    }

    /// Index of the stack for samples without known frames.
    fn empty_stack(&mut self) -> u32 {
        let stacks = &mut self.samples.stacks;
        match stacks.last() {
            Some(last) if last.is_empty() => {}
            _ => stacks.push(Vec::new()),
        }
        u32::try_from(stacks.len() - 1).unwrap_or(u32::MAX)
    }

    fn name_edges(&mut self) {
        for (wakeup, edge) in self.timeline.wakeups.iter().zip(&self.plan.edges) {
            let Some(edge) = edge.filter(|_| wakeup.ended.is_some()) else { continue };
            let wait = self.timeline.ended_by(wakeup).map(|(_, wait)| wait);
            self.program.edges.push(names::edge(edge.0, wait));
        }
        self.program.edges.append(&mut self.plan.extra_edges);
        self.first_spin = u32::try_from(self.program.edges.len()).unwrap_or(u32::MAX);
        self.first_spin_lock = u32::try_from(self.program.objects.len()).unwrap_or(u32::MAX);
        let several = self.spins.locks.len() > 1;
        for number in 1..=self.spins.locks.len() {
            let which = if several { format!(" #{number}") } else { String::new() };
            self.program.objects.push(format!("spin lock{which} seen by samples"));
        }
        self.program.edges.extend(self.spins.edge_names());
        self.program.edges.extend((0..self.polls.edges).map(|number| format!("polling #{number}")));
    }

    fn thread(
        &mut self,
        index: u32,
        thread: &'a timeline::Thread,
        operations: Vec<Operation>,
    ) -> (Vec<Operation>, Vec<Move>) {
        let probes = Probes { hits: &thread.hits, stacks: self.sampled.in_probes() };
        let mut script = Script {
            operations,
            probes: ProbeTime::new(&thread.hits),
            ticks: Ticking::of(&thread.samples, self.empty_stack(), probes),
            ..Script::default()
        };
        if thread.birth == Birth::Unknown {
            let before = thread.start.0.saturating_sub(self.timeline.start.0);
            self.wait(&mut script, names::NOT_STARTED, before);
        }
        let mut between =
            Between::new(thread, self.plan.take_begins(index as usize), self.marks(index as usize));
        let mut last = self.plan.last(index as usize).to_vec();
        for (at, (start, end, state)) in thread.spans().enumerate() {
            let next = thread.intervals.get(at + 1).map_or(u32::MAX, |next| next.first_step);
            let mut now = start;
            while let Some((time, event)) = between.within(start, end, next) {
                let time = time.min(end).max(now);
                script.pass(state, now, time);
                now = time;
                self.does(&mut script, index, event);
            }
            match state {
                State::Blocked(wait) => {
                    // A call that never returns is not recorded: the mutex of a thread that waits for a condition until the
                    // process ends is released here.
                    let is_futex = |wait: &Wait| matches!(wait.reason, WaitReason::Futex(_));
                    let waits = thread.waits.get(wait as usize).is_some_and(is_futex);
                    if waits && between.has_operated() {
                        for operation in std::mem::take(&mut last) {
                            self.write(&mut script, operation);
                        }
                    }
                    if !self.plan.is_decided(index as usize, wait) {
                        self.blocked(&mut script, (index, thread), wait, (start.0, end.0));
                    }
                }
                _ => script.pass(state, now, end),
            }
        }
        while let Some(event) = between.after_all() {
            self.does(&mut script, index, event);
        }
        for operation in last {
            self.write(&mut script, operation);
        }
        self.compute(&mut script);
        self.probe_ns = self.probe_ns.saturating_add(script.probe_ns);
        self.ran_ns = self.ran_ns.saturating_add(script.ran_ns);
        let ticks = script.ticks.finish();
        self.samples.elsewhere = self.samples.elsewhere.saturating_add(ticks.elsewhere);
        self.samples.truncated = self.samples.truncated.saturating_add(ticks.truncated);
        self.samples.threads.push(ticks.samples);
        (script.operations, script.moves.take())
    }

    fn does(&mut self, script: &mut Script<'_>, thread: u32, event: Event<'_>) {
        match event {
            Event::Mark(mark) => self.spin(script, mark),
            Event::Base(base) => self.open(script, base),
            Event::Begin(begin) => self.begin(script, &begin),
            Event::Step(step) => self.step(script, thread, step),
        }
    }

    fn step(&mut self, script: &mut Script<'_>, thread: u32, step: &Step) {
        match step.kind {
            StepKind::Enter(function) => self.call(script, function),
            StepKind::Leave => self.leave(script),
            StepKind::Wake(wakeup) => {
                if let Some(edge) = self.plan.edges.get(wakeup as usize).copied().flatten() {
                    self.write(script, Operation::Release(edge));
                }
            }
            StepKind::Operated(number) => {
                let (_, end, muted) = self.plan.lowered(number);
                if muted {
                    script.muted = script.muted.saturating_sub(1);
                }
                self.write_planned(script, end);
            }
            StepKind::Hole(number) => self.write_planned(script, self.plan.at_hole(number)),
            StepKind::Create(child) => {
                let wanted = self.timeline.threads.get(child as usize).map(|child| child.birth);
                let created = self.created.get_mut(child as usize);
                if let (Some(Birth::By(parent)), Some(created), Some(&child)) =
                    (wanted, created, self.threads.get(&child))
                    && parent == thread
                    && !std::mem::replace(created, true)
                {
                    self.write(script, Operation::Create(child));
                }
            }
            StepKind::Join(child) => {
                if let Some(&child) = self.threads.get(&child) {
                    self.write(script, Operation::Join(child));
                }
            }
        }
    }

    /// A recorded operation begins.
    fn begin(&mut self, script: &mut Script<'_>, begin: &Begin) {
        let (operations, _, muted) = self.plan.lowered(begin.used);
        self.write_planned(script, operations);
        if muted {
            script.muted = script.muted.saturating_add(1);
        }
    }

    fn write_planned(&mut self, script: &mut Script<'_>, operations: Range<u32>) {
        for index in operations {
            if let Some(operation) = self.plan.operation(index) {
                self.write(script, operation);
            }
        }
    }

    fn blocked(
        &mut self,
        script: &mut Script<'_>,
        (index, thread): (u32, &timeline::Thread),
        number: u32,
        (start, end): (u64, u64),
    ) {
        match self.polls.wait(index as usize, number) {
            Poll::Nothing => return,
            Poll::Ended(number) => {
                let edge = self.first_spin.saturating_add(self.spins.edges).saturating_add(number);
                return self.write(script, Operation::Await(EdgeId(edge)));
            }
            Poll::Time => {}
        }
        let Some(wait) = thread.waits.get(number as usize) else { return };
        let length_ns = end.saturating_sub(start);
        match wait.wake {
            Wake::By(wakeup) => {
                if let Some(edge) = self.plan.edges.get(wakeup as usize).copied().flatten() {
                    self.write(script, Operation::Await(edge));
                    self.under_way(script, wakeup, (start, end));
                } else if !self.plan.is_decided(index as usize, number) {
                    self.wait(script, names::KERNEL_LOCK, length_ns);
                }
            }
            Wake::External(External::Timer) if wait.has_deadline() => {
                let last = script.deadline.replace(end).unwrap_or(start);
                let length = self.length(end.saturating_sub(last));
                self.write(script, Operation::SleepNext(length));
            }
            _ if wait.is_for_time() => {
                let length = self.length(length_ns);
                self.write(script, Operation::Sleep(length));
            }
            Wake::External(_) => self.wait(script, names::device(wait), length_ns),
            // Asleep until a signal ended the thread: nothing is unknown, and nothing follows the wait.
            Wake::CutAtEnd if thread.died => {}
            Wake::CutAtEnd | Wake::CutByUnknown => {
                script.unknown_ns = script.unknown_ns.saturating_add(length_ns);
            }
        }
    }
}

impl Script<'_> {
    fn pass(&mut self, state: State, from: Timestamp, until: Timestamp) {
        let length = until.0.saturating_sub(from.0);
        match state {
            State::Running { cpu } if length > 0 && self.muted == 0 => {
                self.moves.runs(cpu, self.compute_ns);
                let unknown_ns = std::mem::take(&mut self.unknown_ns);
                self.unknown_before_ns = self.unknown_before_ns.saturating_add(unknown_ns);
                let probe_ns = self.probes.within(from, until);
                self.probe_ns = self.probe_ns.saturating_add(probe_ns);
                self.ran_ns = self.ran_ns.saturating_add(length);
                self.ticks.run(from, until);
                self.compute_ns = self.compute_ns.saturating_add(length.saturating_sub(probe_ns));
            }
            State::Unknown(_) => self.unknown_ns = self.unknown_ns.saturating_add(length),
            State::Running { .. } | State::Runnable | State::Blocked(_) => {}
        }
    }
}
