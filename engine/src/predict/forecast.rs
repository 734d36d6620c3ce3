//! Predicting: what all CPU counts share, then each of them by itself, then what they say together.

use super::leaders::{crossovers, leaders};
use super::limits::{AS_GOOD, Shape, limit};
use super::model::{Assumptions, Model};
use super::result::{CpuPrediction, DeviceLoad, Limit, LockLoad, Prediction, Saturation, ThreadLoad};
use crate::critical_path::CriticalPath;
use crate::program::{ObjectId, Operation, Program, ProgramError};
use crate::report::{Cpus, Finding};
use crate::schedule::{Outcome, run};
use crate::time::Ticks;

/// Predicts a program's time on these CPU counts. A program that fails [`Program::check`] gives no results and a finding of
/// kind `invalid_program`; a deadlock gives the result up to it and a finding of kind `deadlock`, or
/// `deadlock_in_simulation` if it is not there on unlimited CPUs.
pub fn predict(program: &Program, cpus: &[Cpus], model: &Model) -> Prediction {
    match Forecast::new(program, cpus, model) {
        Ok(forecast) => {
            let runs = forecast.wanted().iter().map(|cpus| forecast.at(*cpus)).collect();
            forecast.conclude(runs)
        }
        Err(error) => invalid(program, &error),
    }
}

/// What is left of a program that cannot be run.
fn invalid(program: &Program, error: &ProgramError) -> Prediction {
    let mut findings = program.findings.clone();
    findings.push(Finding { kind: "invalid_program".to_owned(), text: error.to_string() });
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

/// A prediction in the making. [`Forecast::at`] is the work; its calls are independent of each other.
#[derive(Debug)]
pub struct Forecast<'a> {
    program: &'a Program,
    asked: Vec<Cpus>,
    wanted: Vec<Cpus>,
    runs: u32,
    assumptions: Assumptions,
    shape: Shape,
    leaders: Vec<Option<(String, f64)>>,
    findings: Vec<Finding>,
    /// The ideal time on one CPU, ns: what speed-ups are relative to if one CPU does not come to the end.
    one_ns: f64,
    work: u64,
}

/// The runs on one CPU count.
#[derive(Clone, Debug, PartialEq)]
pub struct Run {
    cpus: Cpus,
    /// Lengths of all runs, ascending, ticks.
    lengths: Vec<u64>,
    middle: Outcome,
}

impl<'a> Forecast<'a> {
    /// Looks at what all CPU counts share.
    ///
    /// # Errors
    /// The program fails [`Program::check`].
    pub fn new(program: &'a Program, cpus: &[Cpus], model: &Model) -> Result<Forecast<'a>, ProgramError> {
        let path = CriticalPath::of(program)?;
        let mut wanted = cpus.to_vec();
        for cpus in [Cpus::ONE, Cpus::Infinite] {
            if !wanted.contains(&cpus) {
                wanted.push(cpus);
            }
        }
        let leaders = leaders(&path, &wanted);
        let unlimited = wanted.iter().position(|cpus| *cpus == Cpus::Infinite);
        let leader = unlimited.and_then(|place| leaders.get(place).cloned().flatten());
        let operations = program.threads.iter().flat_map(|thread| &thread.operations);
        let lengths = operations.filter_map(Operation::length);
        Ok(Forecast {
            program,
            asked: cpus.to_vec(),
            runs: model.runs.max(1),
            assumptions: Assumptions::of(program, model),
            shape: Shape::of(&path, leader),
            leaders,
            findings: path.findings().to_vec(),
            one_ns: path.time(Cpus::ONE).as_ns_f64(),
            work: lengths.fold(0, |sum, length| sum.saturating_add(length.0)),
            wanted,
        })
    }

    /// The CPU counts that have to be run: those asked for, one and unlimited.
    pub fn wanted(&self) -> &[Cpus] {
        &self.wanted
    }

    /// Runs the program on one CPU count as often as the model says.
    pub fn at(&self, cpus: Cpus) -> Run {
        let times = match self.assumptions.scheduler {
            super::Scheduler::Ideal => 1,
            super::Scheduler::Eevdf => self.runs,
        };
        let mut lengths: Vec<(u64, u32)> = Vec::with_capacity(times as usize);
        let mut first = None;
        for time in 0..times {
            let outcome = self.once(cpus, time);
            lengths.push((outcome.length.0, time));
            first.get_or_insert(outcome);
        }
        lengths.sort_unstable();
        let middle = lengths.get(lengths.len() / 2).map_or(0, |(_, time)| *time);
        let middle = match first {
            Some(first) if middle == 0 => first,
            _ => self.once(cpus, middle),
        };
        Run { cpus, lengths: lengths.into_iter().map(|(length, _)| length).collect(), middle }
    }

    fn once(&self, cpus: Cpus, time: u32) -> Outcome {
        let setup = self.assumptions.setup(cpus, self.program.threads.len(), self.work, time);
        // It has been checked.
        run(self.program, &setup).unwrap_or_else(|error| Outcome {
            length: Ticks(0),
            done: Vec::new(),
            findings: vec![Finding { kind: "invalid_program".to_owned(), text: error.to_string() }],
            threads: Vec::new(),
            objects: Vec::new(),
            busy: Vec::new(),
            counts: Default::default(),
        })
    }

    /// What all runs say together; `runs` are those of [`Forecast::wanted`] in any order.
    pub fn conclude(self, runs: Vec<Run>) -> Prediction {
        let find = |cpus: Cpus| runs.iter().find(|run| run.cpus == cpus);
        let ns = |run: &Run| self.time(run).0;
        let one = find(Cpus::ONE).filter(|run| self.is_complete(run)).map_or(self.one_ns, ns);
        let best = find(Cpus::Infinite).map_or(0.0, ns);
        let result = |run: &Run| self.result(run, one, best);
        let results: Vec<CpuPrediction> =
            self.asked.iter().filter_map(|cpus| find(*cpus).map(result)).collect();
        let unlimited = find(Cpus::Infinite).map(result).filter(|unlimited| unlimited.complete);
        let saturation = unlimited.map(|unlimited| {
            let enough = results.iter().filter(|result| result.complete && result.time_ns <= best * AS_GOOD);
            let cpus = enough.map(|result| result.cpus).min().unwrap_or(Cpus::Infinite);
            Saturation { cpus, most_speedup: unlimited.speedup, limit: unlimited.limit }
        });
        let asked = self.asked.iter().filter_map(|cpus| {
            let place = self.wanted.iter().position(|wanted| wanted == cpus)?;
            Some((*cpus, self.leaders.get(place)?.as_ref()))
        });
        let crossovers = crossovers(&asked.collect::<Vec<_>>());
        Prediction {
            findings: self.all_findings(&runs),
            results,
            saturation,
            crossovers,
            threads: self.program.threads.len(),
            most_computing: self.shape.most_computing,
            recorded_cpus: self.program.recorded_cpus,
            trust: self.program.trust,
            recordings: 1,
            assumptions: Some(self.assumptions),
        }
    }

    /// Middle, shortest and longest time of the runs, ns.
    fn time(&self, run: &Run) -> (f64, f64, f64) {
        let ns = |ticks: Option<&u64>| Ticks(ticks.copied().unwrap_or(0)).as_ns_f64();
        (ns(run.lengths.get(run.lengths.len() / 2)), ns(run.lengths.first()), ns(run.lengths.last()))
    }

    fn is_complete(&self, run: &Run) -> bool {
        let operations = self.program.threads.iter().map(|thread| thread.operations.len());
        run.middle.done.iter().copied().eq(operations)
    }

    fn result(&self, run: &Run, one_ns: f64, best_ns: f64) -> CpuPrediction {
        let (time_ns, low_ns, high_ns) = self.time(run);
        let outcome = &run.middle;
        let ns = |ticks: u64| Ticks(ticks).as_ns_f64();
        let complete = self.is_complete(run);
        let speedup = match time_ns {
            _ if !complete => 0.0,
            time_ns if time_ns > 0.0 => one_ns / time_ns,
            _ => 1.0,
        };
        let count = match run.cpus {
            Cpus::Count(count) => f64::from(count.get()),
            Cpus::Infinite => self.shape.most_computing.max(1) as f64,
        };
        let threads = self.program.threads.iter().zip(&outcome.threads).map(|(thread, used)| ThreadLoad {
            thread: thread.name.clone(),
            busy_ns: ns(used.busy),
            spinning_ns: ns(used.spinning),
            ready_ns: ns(used.ready),
            blocked_ns: ns(used.blocked),
        });
        let threads: Vec<ThreadLoad> = threads.collect();
        let sum = |part: fn(&ThreadLoad) -> f64| threads.iter().map(part).sum::<f64>();
        let place = self.wanted.iter().position(|wanted| *wanted == run.cpus);
        let mut result = CpuPrediction {
            cpus: run.cpus,
            time_ns,
            low_ns,
            high_ns,
            speedup,
            efficiency: speedup / count,
            limit: Limit::Nothing,
            more_threads_ns: self.shape.with_more_threads_ns(run.cpus),
            leader: place.and_then(|place| self.leaders.get(place).cloned().flatten()),
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
        };
        result.limit = match complete {
            true => limit(&result, best_ns, outcome.counts.throttled > 0, &self.shape),
            false => Limit::Deadlock,
        };
        result
    }

    fn locks(&self, outcome: &Outcome) -> Vec<LockLoad> {
        let total = outcome.length.0;
        let objects = self.program.objects.iter().zip(&outcome.objects);
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

    fn devices(&self, outcome: &Outcome) -> Vec<DeviceLoad> {
        let total = outcome.length.0;
        let objects = self.program.objects.iter().zip(&outcome.objects).zip(0_u32..);
        let mut devices: Vec<DeviceLoad> = objects
            .filter(|((_, used), _)| used.served > 0)
            .map(|((name, used), object)| {
                let servers = Some(self.assumptions.servers(ObjectId(object))).filter(|servers| *servers > 0);
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

    fn all_findings(&self, runs: &[Run]) -> Vec<Finding> {
        let mut findings = self.program.findings.clone();
        findings.extend(self.findings.iter().cloned());
        let deadlocks = self.findings.iter().any(|finding| finding.kind == "deadlock");
        for run in runs.iter().filter(|run| self.asked.contains(&run.cpus)) {
            for finding in &run.middle.findings {
                let known = |known: &Finding| known.kind == finding.kind;
                if finding.kind == "deadlock" && !deadlocks {
                    let text = format!("{} (this did not happen in the recording)", finding.text);
                    let kind = "deadlock_in_simulation".to_owned();
                    if !findings.iter().any(|finding| finding.kind == kind) {
                        let on = super::words::cpus_text(run.cpus);
                        findings.push(Finding { kind, text: format!("on {on} {text}") });
                    }
                } else if !findings.iter().any(known) {
                    findings.push(finding.clone());
                }
            }
        }
        findings
    }
}

/// Time by the number of CPUs in use: threads that share CPUs in infinitely small slices use no more than there are.
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
