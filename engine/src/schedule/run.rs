//! Running a program on a number of processors.

use super::machine::Machine;
use super::outcome::cpu_accounting::{CpuAccounting, ThreadUse, Watcher};
use super::outcome::run_path::{PathStretch, RunPath};
use super::outcome::usage::ObjectUse;
use super::processors::{Processors, SchedulerCounts, SchedulerParameters};
use super::runs::Runs;
use super::shared_cpus::Shared;
use super::simulation::Simulation;
use super::source::{Operations, Whole};
use crate::finding::Finding;
use crate::program::{Program, ProgramError};
use crate::time::Ticks;

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
    let end = simulation.end.time;
    simulation.machine.close(end);
    let path = told(&mut simulation.machine, end);
    let runs = std::mem::take(&mut simulation.runs);
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
            simulation.machine.close();
            conclude(simulation, |machine| (&machine.accounting, SchedulerCounts::default()))
        }
        Sharing::Scheduled(parameters) => {
            let machine = Processors::new(program, parameters, accounting);
            let mut simulation = Simulation::with(program, source, machine, None);
            simulation.limit(&setup.servers);
            while simulation.instant().is_some() {}
            let end = simulation.end.time;
            simulation.machine.close(end);
            conclude(simulation, |machine| (&machine.accounting, machine.counts))
        }
    }
}

fn conclude<M: Machine, O: Operations>(
    mut simulation: Simulation<'_, M, O>,
    accounts: impl for<'m> Fn(&'m M) -> (&'m CpuAccounting<'m>, SchedulerCounts),
) -> RunOutcome {
    let length = simulation.end.time;
    simulation.usage.close(length);
    let mut findings = simulation.findings();
    let (accounting, counts) = accounts(&simulation.machine);
    if counts.overrun {
        // Threads that have not ended are not stuck: the run was cut off before.
        findings.retain(|finding| {
            !matches!(finding, Finding::Deadlock { .. } | Finding::DeadlockInSimulation { .. })
        });
        findings.push(Finding::TooLong { recorded: false });
    }
    let objects = simulation.usage.objects.iter().zip(&accounting.objects).map(|(object, waiting)| {
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
