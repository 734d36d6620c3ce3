//! Predicting in three steps: what all CPU counts share, each CPU count by itself, and conclusions from all of them.

use super::leaders::{Leaders, Led, crossovers};
use super::model::Model;
use super::result::{CpuPrediction, DeviceLoad, LockLoad, Prediction, Saturation, ThreadLoad};
use super::timing::{Fluid, Timing};
use crate::attribution::{Attribution, Grouping};
use crate::cpus::Cpus;
use crate::finding::{Finding, Stuck};
use crate::program::{ObjectId, Operation, Program, ProgramError};
use crate::schedule::RunOutcome;
use crate::time::Ticks;

/// Predicts a program's time on these CPU counts. A program that fails [`Program::check`] gives no results and a
/// finding of kind `invalid_program`. In a deadlock the run ends at that point, and the result has a finding:
/// `deadlock`, or `deadlock_in_simulation` if there is no deadlock on unlimited CPUs.
pub fn predict(program: &Program, cpus: &[Cpus], model: &Model) -> Prediction {
    match Forecast::new(program, cpus, model) {
        Ok(forecast) => {
            let runs = forecast.wanted().iter().map(|cpus| forecast.at(*cpus)).collect();
            forecast.conclude(runs)
        }
        Err(error) => invalid(program, &error),
    }
}

/// The result for a program that cannot be run.
fn invalid(program: &Program, error: &ProgramError) -> Prediction {
    let mut findings = program.findings.clone();
    findings.push(Finding::InvalidProgram { error: error.to_string() });
    Prediction {
        results: Vec::new(),
        assumptions: None,
        saturation: None,
        crossovers: Vec::new(),
        threads: program.threads.len(),
        most_computing: 0,
        recorded_cpus: program.recorded_cpus,
        trust: program.trust,
        findings,
        recordings: 1,
    }
}

/// A time within this factor of that on unlimited CPUs counts as equal.
const AS_GOOD: f64 = 1.05;

/// A prediction in the making. [`Forecast::at`] is the work; its calls are independent of each other.
#[derive(Debug)]
pub struct Forecast<'a> {
    timing: Timing<'a>,
    attribution: Attribution,
    asked: Vec<Cpus>,
    wanted: Vec<Cpus>,
    runs: u32,
    /// Whether the time with ideal sharing is part of the band.
    has_band: bool,
    /// The ideal time on one CPU, ns. Speed-ups use it if the run on one CPU stops in a deadlock.
    one_ns: f64,
}

/// The runs of the program on one CPU count.
#[derive(Clone, Debug, PartialEq)]
pub struct CountRuns {
    cpus: Cpus,
    /// Lengths of all runs, ideal sharing included, nanoseconds.
    lengths: Vec<f64>,
    /// Whether the program may take any longer time.
    is_open: bool,
    /// The run without random choices.
    plain: RunOutcome,
    leader: Option<(String, f64)>,
    /// The schedule with ideal sharing.
    fluid: Option<Fluid>,
}

impl<'a> Forecast<'a> {
    /// Computes what all CPU counts share.
    ///
    /// # Errors
    /// The program fails [`Program::check`].
    pub fn new(program: &'a Program, cpus: &[Cpus], model: &Model) -> Result<Forecast<'a>, ProgramError> {
        let asked = program.counts(cpus);
        let mut wanted = asked.clone();
        for cpus in [Cpus::ONE, Cpus::Infinite] {
            if !wanted.contains(&cpus) {
                wanted.push(cpus);
            }
        }
        let operations = program.threads.iter().flat_map(|thread| &thread.operations);
        let computed = operations.filter_map(|operation| match operation {
            Operation::Exec(length) | Operation::ExecIn(_, length) | Operation::Once(_, length) => {
                Some(length.0)
            }
            _ => None,
        });
        Ok(Forecast {
            timing: Timing::new(program, model)?,
            attribution: Attribution::of(program, Grouping::Function),
            asked,
            runs: model.runs.max(1),
            has_band: true,
            one_ns: Ticks(computed.fold(0, u64::saturating_add)).as_ns_f64(),
            wanted,
        })
    }

    /// Skips the run with ideal sharing that only the band needs.
    pub(crate) fn without_band(mut self) -> Forecast<'a> {
        self.has_band = false;
        self
    }

    /// The CPU counts to run: those asked for, one and unlimited.
    pub fn wanted(&self) -> &[Cpus] {
        &self.wanted
    }

    /// Runs the program on one CPU count; the model says how often.
    pub fn at(&self, cpus: Cpus) -> CountRuns {
        let mut leaders = Leaders::of(self.timing.program(), &self.attribution);
        self.timing.weigh(&[cpus], &mut leaders);
        self.led(cpus, leaders.found.pop())
    }

    /// Runs the program on one CPU count. `led` is the count's path with its leading function, if already computed.
    pub(crate) fn led(&self, cpus: Cpus, led: Option<Led>) -> CountRuns {
        let times = match self.timing.assumptions().scheduler {
            super::Scheduler::Ideal => 1,
            super::Scheduler::Eevdf => self.runs,
        };
        let (path, leader) = led.map_or((None, None), |led| (Some(led.path), led.leader));
        let mut lengths = path.as_ref().map_or(Vec::new(), |path| path.lengths_ns.clone());
        let plain = path.and_then(|path| path.plain).unwrap_or_else(|| self.timing.run(cpus, 0));
        if lengths.is_empty() {
            lengths.push(self.timing.time_of_ns(cpus, &plain));
        }
        let known = u32::try_from(lengths.len()).unwrap_or(u32::MAX);
        // A length of 0 marks a run that stopped before its end.
        lengths.retain(|length| *length > 0.0);
        lengths.extend((known..times).filter_map(|time| self.timing.finished_ns(cpus, time)));
        let fluid = (self.has_band || cpus == Cpus::Infinite).then(|| self.timing.fluid(cpus));
        lengths.extend(fluid.iter().map(|fluid| fluid.length_ns));
        let may_be = self.timing.may_be_ns(cpus, self.timing.time_of_ns(cpus, &plain));
        lengths.extend(may_be.into_iter().flat_map(|(low, high)| [low, high]).filter(|ns| ns.is_finite()));
        let is_open = may_be.is_some_and(|(_, high)| high.is_infinite());
        CountRuns { cpus, lengths, is_open, plain, leader, fluid }
    }

    /// Combines the runs for all of [`Forecast::wanted`], in any order.
    pub fn conclude(self, runs: Vec<CountRuns>) -> Prediction {
        let find = |cpus: Cpus| runs.iter().find(|run| run.cpus == cpus);
        let ns = |run: &CountRuns| self.timing.time_of_ns(run.cpus, &run.plain);
        let unlimited = find(Cpus::Infinite);
        let executing = unlimited.and_then(|run| run.fluid.as_ref()).map(|fluid| fluid.executing.clone());
        let most_computing = executing.unwrap_or_default().iter().rposition(|ticks| *ticks > 0).unwrap_or(0);
        let one = find(Cpus::ONE).filter(|run| self.is_complete(run)).map_or(self.one_ns, ns);
        let best = find(Cpus::Infinite).map_or(0.0, ns);
        let result = |run: &CountRuns| self.result(run, one, most_computing);
        let results: Vec<CpuPrediction> =
            self.asked.iter().filter_map(|cpus| find(*cpus).map(result)).collect();
        let unlimited = find(Cpus::Infinite).map(result).filter(|unlimited| unlimited.complete);
        let saturation = unlimited.map(|unlimited| {
            let enough = results.iter().filter(|result| result.complete && result.time_ns <= best * AS_GOOD);
            let cpus = enough.map(|result| result.cpus).min().unwrap_or(Cpus::Infinite);
            Saturation { cpus, most_speedup: unlimited.speedup }
        });
        let asked = self.asked.iter().filter_map(|cpus| Some((*cpus, find(*cpus)?.leader.as_ref())));
        let crossovers = crossovers(&asked.collect::<Vec<_>>());
        Prediction {
            findings: self.all_findings(&runs),
            results,
            saturation,
            crossovers,
            threads: self.timing.program().threads.len(),
            most_computing,
            recorded_cpus: self.timing.program().recorded_cpus,
            trust: self.timing.program().trust,
            recordings: 1,
            assumptions: Some(self.timing.assumptions().clone()),
        }
    }

    fn is_complete(&self, run: &CountRuns) -> bool {
        run.plain.is_complete(self.timing.program())
    }

    fn result(&self, run: &CountRuns, one_ns: f64, most_computing: usize) -> CpuPrediction {
        let time_ns = self.timing.time_of_ns(run.cpus, &run.plain);
        let low_ns = run.lengths.iter().copied().fold(time_ns, f64::min);
        let high_ns = run.lengths.iter().copied().fold(time_ns, f64::max);
        let outcome = &run.plain;
        let ns = |ticks: u64| Ticks(ticks).as_ns_f64();
        let complete = self.is_complete(run);
        let speedup = match time_ns {
            _ if !complete => 0.0,
            time_ns if time_ns > 0.0 => one_ns / time_ns,
            _ => 1.0,
        };
        let count = match run.cpus {
            Cpus::Count(count) => f64::from(count.get()),
            Cpus::Infinite => most_computing.max(1) as f64,
        };
        let threads =
            self.timing.program().threads.iter().zip(&outcome.threads).map(|(thread, used)| ThreadLoad {
                thread: thread.name.clone(),
                busy_ns: ns(used.busy),
                spinning_ns: ns(used.spinning),
                ready_ns: ns(used.ready),
                blocked_ns: ns(used.blocked),
            });
        let threads: Vec<ThreadLoad> = threads.collect();
        let sum = |part: fn(&ThreadLoad) -> f64| threads.iter().map(part).sum::<f64>();
        CpuPrediction {
            cpus: run.cpus,
            time_ns,
            low_ns,
            high_ns,
            is_open: run.is_open,
            speedup,
            efficiency: speedup / count,
            throttled: outcome.counts.throttled > 0,
            leader: run.leader.clone(),
            busy_ns: sum(|thread| thread.busy_ns),
            spinning_ns: sum(|thread| thread.spinning_ns),
            ready_ns: sum(|thread| thread.ready_ns),
            blocked_ns: sum(|thread| thread.blocked_ns),
            busy_cpus_ns: busy(&outcome.busy, run.cpus),
            switches: outcome.counts.switches,
            preemptions: outcome.counts.preemptions,
            migrations: outcome.counts.migrations,
            locks: self.locks(outcome),
            devices: self.devices(outcome),
            threads,
            complete,
        }
    }

    fn locks(&self, outcome: &RunOutcome) -> Vec<LockLoad> {
        let total = outcome.length.0;
        let objects = self.timing.program().objects.iter().zip(&outcome.objects);
        let mut locks: Vec<LockLoad> = objects
            .filter(|(_, used)| used.taken > 0)
            .filter(|(_, used)| used.blocked > 0 || used.spun > 0 || used.held > total / 100)
            .map(|(name, used)| LockLoad {
                lock: name.clone(),
                held_share: if total > 0 { used.held as f64 / total as f64 } else { 0.0 },
                taken: used.taken,
                waits: used.waits,
                blocked_ns: Ticks(used.blocked).as_ns_f64(),
                spun_ns: Ticks(used.spun).as_ns_f64(),
            })
            .collect();
        locks.sort_by(|a, b| b.held_share.total_cmp(&a.held_share).then_with(|| a.lock.cmp(&b.lock)));
        locks
    }

    fn devices(&self, outcome: &RunOutcome) -> Vec<DeviceLoad> {
        let total = outcome.length.0;
        let objects = self.timing.program().objects.iter().zip(&outcome.objects).zip(0_u32..);
        let mut devices: Vec<DeviceLoad> = objects
            .filter(|((_, used), _)| used.served > 0)
            .map(|((name, used), object)| {
                let servers =
                    Some(self.timing.assumptions().servers(ObjectId(object))).filter(|servers| *servers > 0);
                let share = |servers: u32| used.served as f64 / (total as f64 * f64::from(servers));
                DeviceLoad {
                    device: name.clone(),
                    servers,
                    busy_share: servers.filter(|_| total > 0).map(share),
                    waits: used.waits,
                    blocked_ns: Ticks(used.blocked).as_ns_f64(),
                }
            })
            .collect();
        let share = |device: &DeviceLoad| device.busy_share.unwrap_or(-1.0);
        devices.sort_by(|a, b| share(b).total_cmp(&share(a)).then(b.blocked_ns.total_cmp(&a.blocked_ns)));
        devices
    }

    fn all_findings(&self, runs: &[CountRuns]) -> Vec<Finding> {
        let mut findings = self.timing.program().findings.clone();
        let unlimited = runs.iter().find(|run| run.cpus == Cpus::Infinite);
        let own = unlimited.and_then(|run| run.fluid.as_ref()).map(|fluid| fluid.findings.clone());
        let own = own.unwrap_or_default();
        findings.extend(own.iter().cloned());
        let deadlocks = own.iter().any(|finding| finding.deadlock().is_some());
        for run in runs.iter().filter(|run| self.asked.contains(&run.cpus)) {
            for finding in &run.plain.findings {
                let on_this = match finding {
                    Finding::Deadlock { stuck, .. } if !deadlocks => simulated(stuck, run.cpus),
                    Finding::DeadlockInSimulation { stuck, .. } => simulated(stuck, run.cpus),
                    other => other.clone(),
                };
                if !findings.iter().any(|known| known.is_like(&on_this)) {
                    findings.push(on_this);
                }
            }
        }
        findings
    }
}

fn simulated(stuck: &Stuck, cpus: Cpus) -> Finding {
    let cpus = match cpus {
        Cpus::Count(count) => count.get(),
        Cpus::Infinite => 0,
    };
    Finding::DeadlockInSimulation { stuck: stuck.clone(), cpus: Some(cpus) }
}

/// Time by the number of CPUs in use. With ideal sharing more threads execute than there are CPUs: these count as all CPUs.
fn busy(ticks: &[u64], cpus: Cpus) -> Vec<f64> {
    let most = match cpus {
        Cpus::Count(count) => count.get() as usize,
        Cpus::Infinite => usize::MAX,
    };
    let mut busy = vec![0_u64; ticks.len().min(most.saturating_add(1))];
    for (threads, ticks) in ticks.iter().enumerate() {
        if let Some(sum) = busy.get_mut(threads.min(most)) {
            *sum = sum.saturating_add(*ticks);
        }
    }
    busy.into_iter().map(|ticks| Ticks(ticks).as_ns_f64()).collect()
}
