//! What keeps a run from being faster.

use super::result::{CpuPrediction, Limit};
use crate::report::Cpus;
use crate::time::Ticks;

/// A time within this factor of the time on unlimited CPUs is as good as that.
pub(super) const AS_GOOD: f64 = 1.05;
/// A lock or device in use for this share of the time is what limits.
const IN_USE: f64 = 0.8;
/// As many threads as ever compute at once do so for this share of the time: more threads would help.
const ALL_AT_WORK: f64 = 0.6;
/// A function with less than this share is not what limits.
const WORTH_NAMING: f64 = 0.02;

/// What the schedule on unlimited CPUs tells about all runs.
#[derive(Clone, Debug)]
pub(super) struct Shape {
    /// Ticks during which so many threads compute on unlimited CPUs, by their number.
    executing: Vec<u64>,
    pub(super) most_computing: usize,
    /// The function that comes first on unlimited CPUs.
    leader: Option<(String, f64)>,
    /// The share of the path that is waiting.
    waiting: f64,
}

impl Shape {
    pub(super) fn of(executing: Vec<u64>, leader: Option<(String, f64)>) -> Shape {
        let total: u64 = executing.iter().sum();
        let idle = executing.first().copied().unwrap_or(0);
        let waiting = if total > 0 { idle as f64 / total as f64 } else { 0.0 };
        let most_computing = executing.iter().rposition(|ticks| *ticks > 0).unwrap_or(0);
        Shape { executing, most_computing, leader, waiting }
    }

    /// The time if what several threads compute at once were divided among as many threads as there are CPUs.
    pub(super) fn with_more_threads_ns(&self, cpus: Cpus) -> f64 {
        let ns = |ticks: u64| Ticks(ticks).as_ns_f64();
        let alone: u64 = self.executing.iter().take(2).sum();
        let shared = self.executing.iter().enumerate().skip(2);
        let work: f64 = shared.map(|(threads, ticks)| threads as f64 * ns(*ticks)).sum();
        match cpus {
            Cpus::Count(count) => ns(alone) + work / f64::from(count.get()),
            Cpus::Infinite => ns(alone),
        }
    }

    /// Share of the time in which as many threads compute as ever do.
    fn at_work(&self) -> f64 {
        let total: u64 = self.executing.iter().sum();
        let most = self.executing.get(self.most_computing).copied().unwrap_or(0);
        if total > 0 { most as f64 / total as f64 } else { 0.0 }
    }
}

/// What limits this run, which would take `best_ns` on unlimited CPUs.
pub(super) fn limit(run: &CpuPrediction, best_ns: f64, throttled: bool, shape: &Shape) -> Limit {
    if run.time_ns <= 0.0 {
        return Limit::Nothing;
    }
    if throttled && run.time_ns > 0.0 {
        return Limit::Quota;
    }
    if run.time_ns > best_ns * AS_GOOD {
        return Limit::Processors;
    }
    if let Some(lock) = run.locks.first().filter(|lock| lock.held_share >= IN_USE && lock.waits > 0) {
        return Limit::Lock(lock.lock.clone(), lock.held_share);
    }
    let device = run.devices.iter().find_map(|device| {
        let share = device.busy_share.filter(|share| *share >= IN_USE)?;
        Some(Limit::Device(device.device.clone(), share))
    });
    if let Some(device) = device {
        return device;
    }
    if shape.at_work() >= ALL_AT_WORK && shape.most_computing > 0 {
        return Limit::Threads(shape.most_computing);
    }
    match &shape.leader {
        Some((function, share)) if *share >= WORTH_NAMING && *share >= shape.waiting => {
            Limit::Function(function.clone(), *share)
        }
        _ if shape.waiting >= WORTH_NAMING => Limit::Waiting(shape.waiting),
        _ => Limit::Threads(shape.most_computing),
    }
}
