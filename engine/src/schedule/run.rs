//! Running a program on a number of processors.

use super::machine::Machine;
use super::objects::recorded_wakes::Edges;
use super::outcome::cpu_accounting::{CpuAccounting, ThreadUse, Watcher};
use super::outcome::result::{Costed, Step};
use super::outcome::run_path::{PathStretch, RunPath};
use super::outcome::usage::ObjectUse;
use super::processors::{Processors, SchedulerCounts, SchedulerParameters};
use super::runs::Runs;
use super::shared_cpus::{Shared, SharedCpuCosts};
use super::simulation::Simulation;
use super::source::{Operations, Whole};
use crate::finding::Finding;
use crate::program::{Program, ProgramError};
use crate::time::Ticks;
use std::mem::take;

/// The machine that a program runs on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setup {
    /// Processors.
    pub processors: Sharing,
    /// For each object: how many threads the device serves at once; 0 or missing: any number.
    pub servers: Vec<u32>,
}

/// The ways in which threads share processors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sharing {
    /// In infinitely small slices without any cost (2001, section 2.3), regardless of nice values and affinity.
    Ideal {
        /// Processors in hundredths: a quota may allow one and a half processors.
        hundredths: u64,
    },
    /// By a scheduler like that of Linux.
    Scheduled(SchedulerParameters),
}

/// The result of running a program; times in ticks.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RunOutcome {
    /// Time of the last event.
    pub length: Ticks,
    /// For each thread: number of operations that it has done; fewer than all if the thread waits forever.
    pub done: Vec<usize>,
    /// Deadlocks and contradictions in the program.
    pub findings: Vec<Finding>,
    /// Each thread's time by state.
    pub threads: Vec<ThreadUse>,
    /// How each object was used during the run.
    pub objects: Vec<ObjectUse>,
    /// Time by the number of threads that used processors. With ideal sharing that number may exceed the processors.
    pub busy: Vec<u64>,
    /// Counts of the scheduler's actions; 0 with ideal sharing.
    pub counts: SchedulerCounts,
}

impl RunOutcome {
    /// Whether every thread that counts ended, background threads excepted; if not, `length` is the time of a stop.
    pub fn is_complete(&self, program: &Program) -> bool {
        let mut threads = program.threads.iter().zip(&self.done);
        threads.all(|(thread, done)| thread.background.is_some() || *done == thread.operations.len())
    }
}

/// Runs a program to its end.
///
/// # Errors
/// The program fails [`Program::check`]. A deadlock is not an error but a finding.
pub fn run(program: &Program, setup: &Setup) -> Result<RunOutcome, ProgramError> {
    run_watched(program, setup, None)
}

/// Like `run`; reports every interval of every thread when it ends.
///
/// # Errors
/// As [`run`].
pub fn run_watched(
    program: &Program,
    setup: &Setup,
    watcher: Option<Watcher<'_>>,
) -> Result<RunOutcome, ProgramError> {
    program.check()?;
    Ok(run_checked(program, setup, watcher))
}

/// Like `run_watched`, for a checked program.
pub(crate) fn run_checked(program: &Program, setup: &Setup, watcher: Option<Watcher<'_>>) -> RunOutcome {
    let accounting = CpuAccounting::new(program.threads.len(), program.objects.len(), watcher);
    on_machine(program, Whole::of(program), setup, accounting)
}

/// Runs a checked program on processors with a scheduler. Returns the run's path too, and when each run of compute
/// operations began. Reports every interval of every thread when it ends.
pub(crate) fn run_with_path(
    program: &Program,
    parameters: SchedulerParameters,
    servers: &[u32],
    watcher: Option<Watcher<'_>>,
) -> (RunOutcome, RunPath, Runs) {
    run_with_causes(program, parameters, servers, watcher, |machine, end| machine.path(end))
}

/// Like `run_with_path`, and also returns every stretch of the path, from its start.
pub(crate) fn run_with_route(
    program: &Program,
    parameters: SchedulerParameters,
    servers: &[u32],
    watcher: Option<Watcher<'_>>,
) -> (RunOutcome, Vec<PathStretch>, Runs) {
    run_with_causes(program, parameters, servers, watcher, |machine, end| machine.route(end))
}

fn run_with_causes<T>(
    program: &Program,
    parameters: SchedulerParameters,
    servers: &[u32],
    watcher: Option<Watcher<'_>>,
    told: impl FnOnce(&mut Processors<'_>, u64) -> T,
) -> (RunOutcome, T, Runs) {
    let accounting = CpuAccounting::new(program.threads.len(), program.objects.len(), watcher);
    let mut machine = Processors::new(program, parameters, accounting);
    machine.keep_causes(program.threads.iter().map(|thread| thread.background.is_some()).collect());
    let mut simulation = Simulation::with(program, Whole::of(program), machine, None);
    simulation.limit(servers);
    simulation.number_runs();
    while simulation.instant().is_some() {}
    let end = simulation.core.end.time;
    simulation.core.machine.close(end);
    let path = told(&mut simulation.core.machine, end);
    let runs = take(&mut simulation.core.runs);
    (conclude(simulation, |machine| (&machine.accounting, machine.counts)), path, runs)
}

pub(super) fn on_machine<O: Operations>(
    program: &Program,
    source: O,
    setup: &Setup,
    accounting: CpuAccounting<'_>,
) -> RunOutcome {
    let threads = program.threads.len();
    match setup.processors {
        Sharing::Ideal { hundredths } => {
            let most = u64::try_from(threads).unwrap_or(u64::MAX).max(1).saturating_mul(100);
            let machine: Shared<'_> = Shared::new(hundredths.min(most), accounting, threads);
            let mut simulation = Simulation::with(program, source, machine, None);
            simulation.limit(&setup.servers);
            while simulation.instant().is_some() {}
            simulation.core.machine.close();
            conclude(simulation, |machine| (&machine.accounting, SchedulerCounts::default()))
        }
        Sharing::Scheduled(parameters) => {
            let machine = Processors::new(program, parameters, accounting);
            let mut simulation = Simulation::with(program, source, machine, None);
            simulation.limit(&setup.servers);
            while simulation.instant().is_some() {}
            let end = simulation.core.end.time;
            simulation.core.machine.close(end);
            conclude(simulation, |machine| (&machine.accounting, machine.counts))
        }
    }
}

fn conclude<M: Machine, O: Operations>(
    mut simulation: Simulation<'_, M, O>,
    accounts: impl for<'m> Fn(&'m M) -> (&'m CpuAccounting<'m>, SchedulerCounts),
) -> RunOutcome {
    let length = simulation.core.end.time;
    simulation.core.usage.close(length);
    let mut findings = simulation.findings();
    let (accounting, counts) = accounts(&simulation.core.machine);
    if counts.overrun {
        // Threads that have not ended are not stuck: the run was cut off before.
        findings.retain(|finding| {
            !matches!(finding, Finding::Deadlock { .. } | Finding::DeadlockInSimulation { .. })
        });
        findings.push(Finding::TooLong { recorded: false });
    }
    let objects = simulation.core.usage.objects.iter().zip(&accounting.objects).map(|(object, waiting)| {
        ObjectUse { waits: waiting.waits, blocked: waiting.blocked, spun: waiting.spun, ..*object }
    });
    RunOutcome {
        length: Ticks(length),
        done: simulation.done(),
        objects: objects.collect(),
        threads: accounting.threads.clone(),
        busy: accounting.busy.clone(),
        counts,
        findings,
    }
}

impl<'a> Simulation<'a, Shared<'static, true>> {
    /// Ready to start on processors shared in infinitely small slices, with costs of waking. The program has been
    /// checked.
    pub(crate) fn with_costs(program: &'a Program, costs: &SharedCpuCosts) -> Self {
        Simulation::costed(program, costs, None)
    }

    /// Like `with_costs`, keeping the order in which operations take effect.
    pub(crate) fn traced_with_costs(program: &'a Program, costs: &SharedCpuCosts) -> Self {
        Simulation::costed(program, costs, Some(Vec::new()))
    }

    fn costed(program: &'a Program, costs: &SharedCpuCosts, trace: Option<Vec<Step>>) -> Self {
        let source = Whole::of(program);
        let machine = Shared::with_costs(costs, program.threads.len(), program.objects.len());
        let mut simulation = Simulation::with(program, source, machine, trace);
        simulation.number_runs();
        simulation.edges = Edges::of(program, true);
        simulation.limit(&costs.servers);
        simulation
    }

    /// Number of processors as a fraction; its numerator is also the number of parts of a tick that virtual time
    /// counts.
    pub(crate) fn capacity(&self) -> (i64, i64) {
        self.core.machine.capacity()
    }

    /// Runs to the end.
    pub(crate) fn run_to_end(mut self) -> Costed {
        while self.instant().is_some() {
            self.core.vertices.clear();
        }
        self.finish_with_costs()
    }

    /// The result, with the steps other than computing.
    pub(crate) fn finish_with_costs(mut self) -> Costed {
        let (latencies, charges) = (take(&mut self.core.latencies), take(&mut self.core.charges));
        let (delays, repeated) = (take(&mut self.core.delays), take(&mut self.core.echoes));
        let schedule = self.into_schedule();
        let like = |(point, run)| Some((point, schedule.runs.point(run)?));
        let echoes = repeated.into_iter().filter_map(like).collect();
        Costed { schedule, latencies, charges, echoes, delays }
    }
}
