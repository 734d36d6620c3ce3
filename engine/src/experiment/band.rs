//! How far a gain may be off (ours): the change is simulated again with other decisions of the scheduler and other latencies; the
//! error of samples and what the model leaves out are added.

use super::trials::Trial;
use crate::cpus::Cpus;

/// Other runs of each program; of those with more operations than [`MANY_OPERATIONS`], fewer.
const RUNS: u32 = 4;
const FEWER_RUNS: u32 = 2;
const MANY_OPERATIONS: usize = 200_000;
/// With more, a run takes so long that there are none.
const MOST_OPERATIONS: usize = 1_000_000;

/// What no run of the model shows, caches above all: as a part of the gain, and in shares of the time. So wide that nineteen of twenty
/// changes that were really made lie inside (`./x validate edits`).
const LEFT_OUT: f64 = 0.15;
const LEAST_LEFT_OUT: f64 = 0.015;

impl Trial<'_> {
    /// The least and the most that the changes gain in several runs, shares of the time before; `gain` is that of the predicted
    /// run. Both programs decide alike: a pair differs by the change alone. A run that stops in a deadlock says nothing.
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

/// The range of a gain, given its range in several runs, with how far it may be off by what was recorded, and with what the model leaves
/// out.
pub(crate) fn with_open((low, high): (f64, f64), gain: f64, recorded: f64) -> (f64, f64) {
    let open = recorded.hypot((gain.abs() * LEFT_OUT).max(LEAST_LEFT_OUT));
    (low - open, (high + open).min(1.0))
}
