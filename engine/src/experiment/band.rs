//! The error of a gain (a method of longpole's own): the change is simulated again with other choices of the scheduler
//! and other latencies; the errors of samples and of the model are added.

use super::trials::Trial;
use crate::cpus::Cpus;

/// Number of further runs of each program; fewer for programs with more operations than [`MANY_OPERATIONS`].
const RUNS: u32 = 4;
const FEWER_RUNS: u32 = 2;
const MANY_OPERATIONS: usize = 200_000;
/// With more operations a run takes too long, so the program is run only once.
const MOST_OPERATIONS: usize = 1_000_000;

/// Error by what the model lacks, caches above all: as a part of the gain, and at least as a share of the time. Chosen
/// by changes that were really made: `./x validate edits` counts how many lie inside.
const LEFT_OUT: f64 = 0.15;
const LEAST_LEFT_OUT: f64 = 0.015;

impl Trial<'_> {
    /// The least and the most gain in several runs, shares of the time before; `gain` is that of the predicted run. Both
    /// programs of a pair have the same random choices, so only the change differs. Runs that stop in a deadlock are ignored.
    pub fn gains(&self, cpus: Cpus, gain: f64) -> (f64, f64) {
        let runs = match self.trials.operations() {
            operations if operations > MOST_OPERATIONS => 0,
            operations if operations > MANY_OPERATIONS => FEWER_RUNS,
            _ => RUNS,
        };
        let gains = (1..=runs).filter_map(|number| self.gain(cpus, number));
        gains.fold((gain, gain), |(low, high), gain| (low.min(gain), high.max(gain)))
    }
}

/// The range of a gain: its range in several runs, widened by the error of the recording and by what the model lacks.
pub(crate) fn with_open((low, high): (f64, f64), gain: f64, recorded: f64) -> (f64, f64) {
    let open = recorded.hypot((gain.abs() * LEFT_OUT).max(LEAST_LEFT_OUT));
    (low - open, (high + open).min(1.0))
}
