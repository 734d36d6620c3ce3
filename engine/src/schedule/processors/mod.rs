//! A number of processors with a scheduler modelled on Linux's EEVDF (kernel/sched/fair.c; Stoica and
//! Abdel-Wahab, "Earliest eligible virtual deadline first", 1995): a queue for each processor. The thread
//! that is not ahead of its share and has the first deadline runs. A thread keeps its processor for a slice
//! while others want it, and without a limit otherwise. A woken thread goes to its last processor if that is
//! idle, else to an idle one, else it queues. A processor that becomes idle pulls a thread from the longest
//! queue, or waits for the next tick of the clock ([`newidle_chance`]).
//!
//! Within an instant all threads that have a processor act first. Then processors that were yielded, or whose slice is
//! over, are rescheduled. Results depend only on the program, the parameters and their seed.

mod cpu;
mod dispatch;
mod idle;
mod load;
mod load_balance;
mod newidle_chance;
mod parameters;
mod quota;
mod select_task_rq;
mod task;

pub use parameters::{SchedulerParameters, base_slice};

use self::cpu::Cpu;
use self::idle::CpuSet;
use self::quota::Quota;
use self::task::{NONE, Task, TaskState};
use super::agenda::Agenda;
use super::machine::{Machine, Origin, Turn, Why};
use super::outcome::cause_tree::CauseTree;
use super::outcome::cpu_accounting::{CpuAccounting, SimulatedState};
use super::outcome::run_path::{PathStretch, RunPath};
use super::steps::SlicesLeft;
use crate::numbers::Numbers;
use crate::program::{ObjectId, Program};
use crate::time::Ticks;

/// Times beyond this are not simulated: sums of them could overflow.
const LATEST: u64 = u64::MAX / 4;
/// Largest number of processors of a machine. If threads want more, each processor that becomes idle checks all others.
const MOST_CPUS: u32 = 1 << 20;

/// The processors.
#[derive(Debug)]
pub struct Processors<'w> {
    parameters: SchedulerParameters,
    agenda: Agenda,
    tasks: Vec<Task>,
    cpus: Vec<Cpu>,
    /// Processors that have no thread and an empty queue.
    idle: CpuSet,
    /// Processors to be rescheduled at the end of this instant.
    flagged: Vec<u32>,
    /// Threads in all queues.
    queued: usize,
    /// Threads that will act without help: they compute, act, or wait by the clock.
    live: usize,
    /// Number of free spin locks that have spinning threads, all without a processor.
    spinners_on_free_locks: usize,
    /// The agenda's entry for the next tick, if an idle processor waits for a tick.
    tick: Option<u32>,
    /// Time from the clock's last tick to the start of the run.
    phase: u64,
    quota: Option<Quota>,
    /// Slices until the next ones are longer.
    slices: SlicesLeft,
    numbers: Option<Numbers>,
    /// The last number that `draw` gave without a seed.
    drawn: u32,
    /// Sets of processors that threads are restricted to.
    masks: Vec<Vec<u32>>,
    /// The thread whose wait by the clock has just ended.
    expiring: u32,
    /// The thread that acts before all others.
    urgent: u32,
    pub(super) accounting: CpuAccounting<'w>,
    pub(super) counts: SchedulerCounts,
    /// The tree for the run's path, if the path is wanted.
    causes: Option<CauseTree>,
}

/// Counts of the scheduler's actions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SchedulerCounts {
    /// Number of times that a processor switched to another thread than the one before.
    pub switches: u64,
    /// Number of times that a thread lost its processor to another one.
    pub preemptions: u64,
    /// A thread continued on another processor than before.
    pub migrations: u64,
    /// A processor had to stop because the quota was used up.
    pub throttled: u64,
    /// The run was cut off, because sums of later times could overflow.
    pub overrun: bool,
}

impl<'w> Processors<'w> {
    /// `program` gives the threads' nice values and affinities.
    pub(super) fn new(
        program: &Program,
        parameters: SchedulerParameters,
        accounting: CpuAccounting<'w>,
    ) -> Processors<'w> {
        let threads = program.threads.len();
        // More processors than threads are never used, unless a thread's affinity names higher numbers.
        let asked =
            program.threads.iter().flat_map(|thread| &thread.cpus).filter(|cpu| **cpu < parameters.cpus);
        let useful = u32::try_from(threads)
            .unwrap_or(u32::MAX)
            .max(asked.max().map_or(0, |cpu| cpu.saturating_add(1)));
        let cpus = parameters.cpus.min(useful.min(MOST_CPUS)).max(1);
        let mut masks: Vec<Vec<u32>> = Vec::new();
        let tasks = program.threads.iter().map(|thread| {
            let mut mask: Vec<u32> = thread.cpus.iter().copied().filter(|number| *number < cpus).collect();
            mask.sort_unstable();
            mask.dedup();
            // As in the kernel, a mask that contains no existing processor allows all processors.
            let mask = (!mask.is_empty() && mask.len() < cpus as usize).then(|| {
                let known = masks.iter().position(|known| *known == mask);
                known.unwrap_or_else(|| {
                    masks.push(mask);
                    masks.len() - 1
                }) as u32
            });
            Task::new(parameters::weight(thread.nice), mask)
        });
        let tasks = tasks.collect();
        let mut numbers = (parameters.seed != 0).then(|| Numbers::new(parameters.seed));
        let phase = match (&mut numbers, parameters.tick.0) {
            (Some(numbers), 1..) => numbers.below(parameters.tick.0),
            _ => 0,
        };
        let quota = parameters.quota.map(|hundredths| Quota::new(hundredths, numbers.as_mut()));
        let parameters = SchedulerParameters { slice: Ticks(parameters.slice.0.max(1)), ..parameters };
        Processors {
            parameters,
            agenda: Agenda::default(),
            tasks,
            cpus: (0..cpus).map(|_| Cpu::new()).collect(),
            idle: CpuSet::full(cpus),
            flagged: Vec::new(),
            queued: 0,
            live: 0,
            spinners_on_free_locks: 0,
            tick: None,
            phase,
            quota,
            slices: SlicesLeft::of(program),
            numbers,
            drawn: 0,
            masks,
            expiring: NONE,
            urgent: NONE,
            accounting,
            counts: SchedulerCounts::default(),
            causes: None,
        }
    }

    /// Keeps the run's path. `background`: for each thread, whether it runs only as long as other threads do.
    pub(super) fn keep_causes(&mut self, background: Vec<bool>) {
        self.causes = Some(CauseTree::new(background, self.cpus.len()));
    }

    /// The path of the run, which ended at this time; empty if it was not kept.
    pub(super) fn path(&mut self, end: u64) -> RunPath {
        self.causes.take().map(|causes| causes.path(end)).unwrap_or_default()
    }

    /// The stretches of the path, from its start.
    pub(super) fn route(&mut self, end: u64) -> Vec<PathStretch> {
        self.causes.take().map(|causes| causes.route(end)).unwrap_or_default()
    }

    /// A random number below 1,000. Without a seed, steps of the golden section give each number in turn.
    fn draw(&mut self) -> u32 {
        match &mut self.numbers {
            Some(numbers) => u32::try_from(numbers.below(1000)).unwrap_or(0),
            None => {
                self.drawn = self.drawn.wrapping_add(618) % 1000;
                self.drawn
            }
        }
    }

    fn task(&mut self, thread: u32) -> &mut Task {
        &mut self.tasks[thread as usize]
    }

    /// Ends all intervals at the end of the run.
    pub(super) fn close(&mut self, end: u64) {
        self.accounting.close(end);
    }

    /// The next turn at this instant; `None` if there is none.
    fn turn(&mut self) -> Option<Turn> {
        loop {
            if self.urgent != NONE {
                return Some(Turn::Act(std::mem::replace(&mut self.urgent, NONE)));
            }
            self.expiring = NONE;
            if let Some((thread, entry)) = self.agenda.next_due() {
                match self.due(thread, entry) {
                    Some(turn) => return Some(turn),
                    None => continue,
                }
            }
            if let Some(thread) = self.agenda.next_ready() {
                if std::mem::take(&mut self.task(thread).expires) {
                    self.live = self.live.saturating_sub(1);
                    self.expiring = thread;
                    return Some(Turn::Expired(thread));
                }
                return Some(Turn::Act(thread));
            }
            if !self.reschedule_flagged() {
                return None;
            }
        }
    }

    /// Handles a due entry of the agenda.
    fn due(&mut self, thread: u32, entry: u32) -> Option<Turn> {
        if thread as usize == self.tasks.len() {
            self.refill(entry);
            return None;
        }
        if thread as usize > self.tasks.len() {
            self.ticks(entry);
            return None;
        }
        let task = &mut self.tasks[thread as usize];
        if task.event != Some(entry) {
            return None;
        }
        task.event = None;
        match task.state {
            TaskState::Off => {
                self.live = self.live.saturating_sub(1);
                self.expiring = thread;
                Some(Turn::Expired(thread))
            }
            TaskState::Arriving => self.arrived(thread),
            TaskState::Running => {
                self.charge(thread);
                if self.tasks[thread as usize].left == 0 {
                    self.task(thread).state = TaskState::Acting;
                    return Some(Turn::Act(thread));
                }
                self.stretch_over(thread);
                None
            }
            TaskState::Spinning => {
                self.charge(thread);
                self.stretch_over(thread);
                None
            }
            TaskState::Queued | TaskState::Acting => None,
        }
    }
}

impl Machine for Processors<'_> {
    const DECIDES: bool = false;

    fn now(&self) -> u64 {
        self.agenda.now()
    }

    fn next_instant(&mut self) -> Option<u64> {
        if self.agenda.now() > LATEST {
            self.counts.overrun = true;
            return None;
        }
        // Slices and quotas go on forever by themselves, but no thread acts because of them.
        if self.live == 0 && self.spinners_on_free_locks == 0 {
            return None;
        }
        self.agenda.next_instant()
    }

    fn follows_runs(&self) -> bool {
        self.causes.is_some()
    }

    fn begin_run(&mut self, thread: u32, run: u32) {
        let now = self.agenda.now();
        if let Some(causes) = &mut self.causes {
            causes.begins_run(thread, run, now);
        }
    }

    fn serve_after(&mut self, thread: u32, before: u32, device: ObjectId) {
        let now = self.agenda.now();
        if let Some(causes) = &mut self.causes {
            causes.served_after(thread, before, device, now);
        }
    }

    fn wait_from(&mut self, thread: u32, origin: Origin) {
        let Some(causes) = &mut self.causes else { return };
        match origin {
            Origin::Start => causes.waits_from_start(thread),
            Origin::Timer => causes.waits_for_timer(thread),
        }
    }

    fn next_turn(&mut self) -> Option<Turn> {
        let turn = self.turn();
        if let (Some(causes), Some(Turn::Act(thread) | Turn::Expired(thread))) = (&mut self.causes, turn) {
            causes.acted(thread);
        }
        turn
    }

    fn wake(&mut self, thread: u32, by: Option<u32>) {
        self.live += 1;
        let now = self.agenda.now();
        if let Some(causes) = &mut self.causes {
            causes.woken(thread, by, self.accounting.doing(thread), now);
        }
        self.accounting.change(thread, now, SimulatedState::Ready, None);
        self.select_task_rq(thread, by);
    }

    fn compute(&mut self, thread: u32, length: u64) {
        if length == 0 {
            return self.agenda.soon(thread);
        }
        let task = &mut self.tasks[thread as usize];
        let debt = std::mem::take(&mut task.debt);
        task.left = length.saturating_add(debt);
        if let Some(causes) = self.causes.as_mut().filter(|_| debt > 0) {
            causes.charged(thread, debt);
        }
        self.run(thread);
    }

    fn block(&mut self, thread: u32, why: Why) {
        // The cost of waking other threads is spent during this wait.
        self.task(thread).debt = 0;
        self.deschedule(thread, SimulatedState::Blocked(why));
    }

    fn expire(&mut self, thread: u32, length: u64) {
        self.live += 1;
        if length == 0 {
            self.task(thread).expires = true;
            return self.agenda.soon(thread);
        }
        let entry = self.agenda.after(length, thread);
        self.task(thread).event = entry;
    }

    fn spin(&mut self, thread: u32, object: ObjectId) {
        self.live = self.live.saturating_sub(1);
        let cpu = self.tasks[thread as usize].cpu;
        let now = self.agenda.now();
        if let Some(causes) = &mut self.causes {
            causes.spins(thread, object, now);
        }
        self.accounting.change(thread, now, SimulatedState::Spinning(object), Some(cpu));
        let task = self.task(thread);
        task.state = TaskState::Spinning;
        task.spins_for = Some(object);
        task.charged = now;
        self.arm(thread);
    }

    fn is_spinning(&self, thread: u32) -> bool {
        self.tasks[thread as usize].state == TaskState::Spinning
    }

    fn retry(&mut self, thread: u32, by: u32) {
        self.live += 1;
        self.charge(thread);
        let now = self.agenda.now();
        if let Some(causes) = &mut self.causes {
            causes.spun(thread, by, now);
        }
        let task = self.task(thread);
        task.state = TaskState::Acting;
        task.spins_for = None;
        task.event = None;
        self.agenda.soon(thread);
    }

    fn spinners_on_free_locks(&mut self, more: bool) {
        self.spinners_on_free_locks = if more {
            self.spinners_on_free_locks + 1
        } else {
            self.spinners_on_free_locks.saturating_sub(1)
        };
    }

    fn end(&mut self, thread: u32) {
        self.deschedule(thread, SimulatedState::Nothing);
    }
}
