//! One answer to every question about a program's time: its length on the scheduler's model for a number of CPUs, and the
//! path of that run, which shows where the time went. A program that runs ideally has the extended critical path instead. All
//! commands take times and weights from here, so that they agree.

use super::cpu_costs::{CpuCosts, at_cost};
use super::lock_costs::LockCosts;
use super::model::{Assumptions, Model, Scheduler};
use super::shared_lines::{LineLoad, grown};
use crate::cpus::Cpus;
use crate::critical_path::{
    CostedPath, CriticalPath, RunPaths, WeightedWait, Weights, has_waits_by_the_clock,
};
use crate::finding::Finding;
use crate::program::{Operation, Program, ProgramError};
use crate::schedule::{
    Observer, PathStretch, RunOutcome, RunPath, Runs, Setup, SharedCpuCosts, Sharing, Watcher, run_checked,
    run_observed, run_with_path, run_with_route,
};
use crate::time::Ticks;
use std::borrow::Cow;

/// A program on a machine.
#[derive(Debug)]
pub struct Timing<'a> {
    program: &'a Program,
    assumptions: Assumptions,
    /// Length of all operations, ticks.
    work: u64,
    /// Number of runs whose paths are computed.
    paths: usize,
    /// The schedule that all CPU counts share: with ideal sharing, of a program without waits by the clock.
    shared: Option<CriticalPath<'a>>,
    /// Cache lines for which threads wait longer on more CPUs.
    lines: Vec<LineLoad>,
    /// CPU time of locks on other CPU counts.
    locks: LockCosts,
    /// CPU time of functions on other CPU counts, if that was measured.
    costs: Option<CpuCosts>,
}

/// Receives the weights of a program's time.
pub trait Visitor {
    /// Called with the weights for some CPU counts, in the order of their places in `weights`.
    fn visit<const N: usize>(&mut self, weights: &Weights<'_, N>, paths: &[PathFacts]);
}

/// Calls two visitors, one after the other.
impl<A: Visitor, B: Visitor> Visitor for (A, B) {
    fn visit<const N: usize>(&mut self, weights: &Weights<'_, N>, paths: &[PathFacts]) {
        self.0.visit(weights, paths);
        self.1.visit(weights, paths);
    }
}

/// The CPU count and the runs that weights belong to.
#[derive(Clone, Debug, PartialEq)]
pub struct PathFacts {
    /// The CPU count.
    pub cpus: Cpus,
    /// The predicted time, nanoseconds.
    pub time_ns: f64,
    /// Places in the weights: one, or one for each of several runs.
    pub places: std::ops::Range<usize>,
    /// Length of each run, nanoseconds; the first is `time_ns`. 0: another run stopped before its end, in a deadlock of the
    /// simulation, and is ignored.
    pub lengths_ns: Vec<f64>,
    /// Time that passes on the path without being computed, by kind.
    pub waits: Vec<WeightedWait>,
    /// Computing on the path to wake others.
    pub waking: Option<WeightedWait>,
    /// The result of the run without random choices, if there was one.
    pub plain: Option<RunOutcome>,
    /// Deadlocks and contradictions in the program.
    pub findings: Vec<Finding>,
}

/// A mean of several runs.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Mean {
    /// Nanoseconds of the predicted time.
    pub ns: f64,
    /// Half-width of the predicted time's 95 % interval, from the differences of the runs; 0 for one run.
    pub error_ns: f64,
}

impl PathFacts {
    /// The mean over the runs of a part of the predicted time; `ns` gives the part in the run with this place.
    pub fn mean(&self, ns: impl Fn(usize) -> f64) -> Mean {
        if self.places.len() == 1 {
            return Mean { ns: ns(self.places.start), error_ns: 0.0 };
        }
        let runs = self.places.clone().zip(&self.lengths_ns).filter(|(_, length)| **length > 0.0);
        let parts: Vec<f64> = runs.map(|(place, length)| ns(place) / length * self.time_ns).collect();
        let count = parts.len().max(1) as f64;
        let mean = parts.iter().sum::<f64>() / count;
        let squares: f64 = parts.iter().map(|part| (part - mean).powi(2)).sum();
        let deviation = (squares / (count - 1.0).max(1.0)).sqrt();
        Mean { ns: mean, error_ns: student(parts.len()) * deviation / count.sqrt() }
    }
}

/// Times that differ by more than this share make a range.
const UNSURE: f64 = 0.1;

/// Number of runs whose paths are computed; the smaller one for programs with more operations than this.
const PATHS: usize = 5;
const FEWER_PATHS: usize = 3;
const MANY_OPERATIONS: usize = 200_000;

/// Student's t: how many standard errors the 95 % interval of a mean extends to each side, by the number of values.
fn student(count: usize) -> f64 {
    match count {
        0..=3 => 4.303,
        4 => 3.182,
        _ => 2.776,
    }
}

/// A schedule on ideally shared processors.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Fluid {
    /// Its length, nanoseconds.
    pub length_ns: f64,
    /// Ticks by the number of threads that execute.
    pub executing: Vec<u64>,
    /// Deadlocks and contradictions in the program.
    pub findings: Vec<Finding>,
}

impl<'a> Timing<'a> {
    /// # Errors
    /// The program fails [`Program::check`].
    pub fn new(program: &'a Program, model: &Model) -> Result<Timing<'a>, ProgramError> {
        program.check()?;
        let assumptions = Assumptions::of(program, model);
        let ideal = assumptions.scheduler == Scheduler::Ideal && assumptions.quota.is_none();
        let (lines, costs) = (LineLoad::of(program), CpuCosts::of(program));
        let locks = LockCosts::of(program);
        let is_as_recorded = lines.is_empty() && locks.is_empty() && costs.is_none();
        let shared = match ideal && is_as_recorded && !has_waits_by_the_clock(program) {
            true => Some(CriticalPath::of(program)?),
            false => None,
        };
        let operations = program.threads.iter().flat_map(|thread| &thread.operations);
        let work =
            operations.filter_map(Operation::length).fold(0, |sum, length| length.0.saturating_add(sum));
        let operations = program.threads.iter().map(|thread| thread.operations.len()).sum::<usize>();
        let paths = if operations > MANY_OPERATIONS { FEWER_PATHS } else { PATHS };
        let paths = if model.runs as usize >= paths { paths } else { 1 };
        Ok(Timing { program, assumptions, work, paths, shared, lines, locks, costs })
    }

    /// The program.
    pub fn program(&self) -> &'a Program {
        self.program
    }

    /// The program with the compute times that it has on this number of CPUs.
    fn program_on(&self, cpus: Cpus) -> Cow<'a, Program> {
        // Measured costs, if there are any, replace the models of cache lines and locks.
        let program = match &self.costs {
            Some(costs) => at_cost(self.program, costs, cpus),
            None => grown(self.program, self.lines.iter().chain(self.locks.locks(cpus)), cpus),
        };
        program.map_or(Cow::Borrowed(self.program), Cow::Owned)
    }

    /// The parameters of the machine.
    pub fn assumptions(&self) -> &Assumptions {
        &self.assumptions
    }

    /// Runs the program on the model of the machine. Run 0 has no random choices: its length is the predicted time. Each
    /// other run draws its own random choices for what the model leaves open.
    pub fn run(&self, cpus: Cpus, number: u32) -> RunOutcome {
        self.watched(cpus, number, None)
    }

    /// Length of a run, nanoseconds; `None`: the run stops before its end.
    pub(crate) fn finished_ns(&self, cpus: Cpus, number: u32) -> Option<f64> {
        let outcome = self.run(cpus, number);
        outcome.is_complete(self.program).then(|| outcome.length.as_ns_f64())
    }

    /// Like `Timing::run`; reports every interval of every thread when it ends.
    pub fn run_watched(&self, cpus: Cpus, number: u32, watcher: Watcher<'_>) -> RunOutcome {
        self.watched(cpus, number, Some(watcher))
    }

    /// Run 0 and its path; a program that runs ideally has no path. Reports every interval of every thread when the
    /// interval ends.
    pub(crate) fn run_with_path(&self, cpus: Cpus, watcher: Watcher<'_>) -> (RunOutcome, Option<RunPath>) {
        let (setup, program) = (self.setup(cpus), self.program_on(cpus));
        match setup.processors {
            Sharing::Scheduled(parameters) => {
                let (outcome, path, _) = run_with_path(&program, parameters, &setup.servers, Some(watcher));
                (outcome, Some(path))
            }
            Sharing::Ideal { .. } => (run_checked(&program, &setup, Some(watcher)), None),
        }
    }

    /// Run 0, reporting all events in order of time.
    pub(crate) fn observed<B: Observer>(&self, cpus: Cpus, observer: B) -> (RunOutcome, B) {
        run_observed(&self.program_on(cpus), &self.setup(cpus), observer)
    }

    /// The machine for run 0, without random choices.
    pub(crate) fn setup(&self, cpus: Cpus) -> Setup {
        self.assumptions.setup(cpus, self.program.threads.len(), self.work, 0)
    }

    fn watched(&self, cpus: Cpus, number: u32, watcher: Option<Watcher<'_>>) -> RunOutcome {
        let setup = self.assumptions.setup(cpus, self.program.threads.len(), self.work, number);
        run_checked(&self.program_on(cpus), &setup, watcher)
    }

    /// The path of run 0 from its start to its end, and the runs of compute operations that it refers to. Reports every
    /// interval of every thread when it ends. `None` for a program that runs ideally.
    pub(crate) fn route(
        &self,
        cpus: Cpus,
        watcher: Option<Watcher<'_>>,
    ) -> Option<(RunOutcome, Vec<PathStretch>, Runs)> {
        let (setup, program) = (self.setup(cpus), self.program_on(cpus));
        match setup.processors {
            Sharing::Scheduled(parameters) => {
                Some(run_with_route(&program, parameters, &setup.servers, watcher))
            }
            Sharing::Ideal { .. } => None,
        }
    }

    /// The predicted time, nanoseconds.
    pub fn time_ns(&self, cpus: Cpus) -> f64 {
        match &self.shared {
            Some(path) => path.time(cpus).as_ns_f64(),
            None => self.run(cpus, 0).length.as_ns_f64(),
        }
    }

    /// The shortest and the longest time that other costs of waiting would give, if they differ by more than a tenth of the
    /// predicted time, `time_ns`; nanoseconds. Infinity: threads that spin may take CPUs from those for which they wait.
    pub fn may_be_ns(&self, cpus: Cpus, time_ns: f64) -> Option<(f64, f64)> {
        if self.costs.is_some() || Some(cpus) == self.program.recorded_cpus.and_then(Cpus::count) {
            return None;
        }
        let others = self.locks.others(self.program, &self.lines, cpus);
        let setup = self.setup(cpus);
        let lengths = others.iter().filter_map(|other| {
            let outcome = run_checked(other, &setup, None);
            outcome.is_complete(other).then(|| outcome.length.as_ns_f64())
        });
        let (low, high) =
            lengths.fold((time_ns, time_ns), |(low, high), length| (low.min(length), high.max(length)));
        let high = if self.spins_beyond(cpus) { f64::INFINITY } else { high };
        (high - low > time_ns * UNSURE).then_some((low, high))
    }

    /// Whether threads spin for others, and there are more threads that compute than CPUs.
    fn spins_beyond(&self, cpus: Cpus) -> bool {
        let spins = |finding: &Finding| matches!(finding, Finding::Spinning { spun_ns, ran_ns, .. } if *spun_ns as f64 > UNSURE * *ran_ns as f64);
        let work = |thread: &crate::program::Thread| {
            thread
                .operations
                .iter()
                .filter_map(Operation::length)
                .fold(0, |sum, length| length.0.saturating_add(sum))
        };
        let works: Vec<u64> = self.program.threads.iter().map(work).collect();
        let least = works.iter().copied().max().unwrap_or(0) / 100;
        let computing = works.iter().filter(|work| **work > least).count();
        cpus.or(usize::MAX) < computing && self.program.findings.iter().any(spins)
    }

    /// The predicted time, nanoseconds, given run 0.
    pub(super) fn time_of_ns(&self, cpus: Cpus, plain: &RunOutcome) -> f64 {
        match &self.shared {
            Some(path) => path.time(cpus).as_ns_f64(),
            None => plain.length.as_ns_f64(),
        }
    }

    /// Groups of CPU counts that `Timing::weigh` computes fastest together.
    pub fn groups(&self, cpus: &[Cpus]) -> Vec<Vec<Cpus>> {
        match &self.shared {
            Some(_) => vec![cpus.to_vec()],
            None => cpus.iter().map(|cpus| vec![*cpus]).collect(),
        }
    }

    /// Passes the weights of the time on each of these CPU counts to the visitor, in the order given.
    pub fn weigh(&self, cpus: &[Cpus], visitor: &mut impl Visitor) {
        if let Some(path) = &self.shared {
            for weights in path.weights(cpus) {
                let facts = weights.cpus().iter().enumerate().map(|(place, cpus)| PathFacts {
                    cpus: *cpus,
                    time_ns: path.time(*cpus).as_ns_f64(),
                    places: place..place + 1,
                    lengths_ns: vec![path.time(*cpus).as_ns_f64()],
                    waits: Vec::new(),
                    waking: None,
                    plain: None,
                    findings: path.findings().to_vec(),
                });
                visitor.visit(&weights, &facts.collect::<Vec<_>>());
            }
            return;
        }
        for cpus in cpus {
            match (self.assumptions.scheduler, self.paths) {
                (Scheduler::Ideal, _) => self.weigh_ideally(*cpus, visitor),
                (Scheduler::Eevdf, PATHS) => self.weigh_runs::<PATHS>(*cpus, visitor),
                (Scheduler::Eevdf, FEWER_PATHS) => self.weigh_runs::<FEWER_PATHS>(*cpus, visitor),
                (Scheduler::Eevdf, _) => self.weigh_runs::<1>(*cpus, visitor),
            }
        }
    }

    fn weigh_ideally(&self, cpus: Cpus, visitor: &mut impl Visitor) {
        let program = self.program_on(cpus);
        let path = CostedPath::of(&program, cpus, &self.costs(cpus));
        let (waits, waking) = path.waits();
        // The path's own length may differ by some picoseconds, by rounding.
        let plain = self.run(cpus, 0);
        let facts = PathFacts {
            cpus,
            time_ns: plain.length.as_ns_f64(),
            places: 0..1,
            lengths_ns: vec![path.time().as_ns_f64()],
            waits,
            waking: Some(waking).filter(|waking| waking.count > 0),
            plain: Some(plain),
            findings: path.findings().to_vec(),
        };
        visitor.visit(&path.weights(), &[facts]);
    }

    fn weigh_runs<const N: usize>(&self, cpus: Cpus, visitor: &mut impl Visitor) {
        let threads = self.program.threads.len();
        let program = self.program_on(cpus);
        let path = RunPaths::<N>::of(&program, cpus, |number| {
            let setup = self.assumptions.setup(cpus, threads, self.work, number);
            match setup.processors {
                Sharing::Scheduled(parameters) => run_with_path(&program, parameters, &setup.servers, None),
                Sharing::Ideal { .. } => Default::default(),
            }
        });
        let (waits, waking) = path.waits();
        let facts = PathFacts {
            cpus,
            time_ns: path.plain.length.as_ns_f64(),
            places: 0..N,
            lengths_ns: path.lengths().map(Ticks::as_ns_f64).to_vec(),
            waits,
            waking: Some(waking).filter(|waking| waking.count > 0),
            plain: Some(path.plain.clone()),
            findings: self.confirmed(&path.plain.findings),
        };
        visitor.visit(&path.weights(), &[facts]);
    }

    /// The findings of a run. A deadlock counts as the program's own only if it occurs without a scheduler, too.
    fn confirmed(&self, findings: &[Finding]) -> Vec<Finding> {
        let is_deadlock = |finding: &Finding| finding.deadlock().is_some();
        if !findings.iter().any(is_deadlock) || self.fluid(Cpus::Infinite).findings.iter().any(is_deadlock) {
            return findings.to_vec();
        }
        let renamed = findings.iter().map(|finding| match finding {
            Finding::Deadlock { stuck, .. } => {
                Finding::DeadlockInSimulation { stuck: stuck.clone(), cpus: None }
            }
            other => other.clone(),
        });
        renamed.collect()
    }

    /// The schedule on ideally shared processors, with the costs of waking.
    pub fn fluid(&self, cpus: Cpus) -> Fluid {
        if let Some(path) = &self.shared {
            let (executing, findings) = (path.executing().to_vec(), path.findings().to_vec());
            return Fluid { length_ns: path.time(cpus).as_ns_f64(), executing, findings };
        }
        let program = self.program_on(cpus);
        let path = CostedPath::of(&program, cpus, &self.costs(cpus));
        let (executing, findings) = (path.executing().to_vec(), path.findings().to_vec());
        Fluid { length_ns: path.time().as_ns_f64(), executing, findings }
    }

    /// The model with this number of ideally shared CPUs, and with the costs of waking threads.
    pub fn costs(&self, cpus: Cpus) -> SharedCpuCosts {
        self.assumptions.costs(cpus, self.program.threads.len())
    }
}
