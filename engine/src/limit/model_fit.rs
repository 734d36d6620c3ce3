//! Whether the predicted run fits the recorded run, and the recorded run the program without recording.

use super::causes::idle::MostlyAsleep;
use super::search::Search;
use super::watched_run::WatchedRun;
use super::{LimitKind, Limits};
use crate::cpus::Cpus;
use crate::event::Overhead;
use crate::finding::{Finding, is_delay_by_others};

/// The prediction for the recorded machine should be within this of the measured time, not counting the cost
/// of recording.
const OFF: f64 = 0.1;
/// A recording that costs more than this part of the program's own CPU time has a note.
const COSTLY: f64 = 0.1;
/// Least CPU time of a program, nanoseconds, for which a share of it is meaningful.
const COMPUTES_NS: u64 = 20_000_000;
/// With less CPU time than this, nanoseconds, the program's start may be most of the run; that is no reason to doubt
/// the prediction.
const STARTS_NS: u64 = 100_000_000;

impl Search {
    /// The recorded time in which the program was awake, nanoseconds; `None`: not the recorded machine, or it computes too
    /// little.
    pub(super) fn measured_ns(&self, run: &WatchedRun) -> Option<f64> {
        let program = self.program();
        let cost = program.overhead.filter(|cost| cost.wall_ns > 0 && cost.target_ns > STARTS_NS)?;
        let is_recorded =
            program.recorded_cpus.and_then(Cpus::count) == Some(run.cpus) && self.rest.is_none();
        let asleep = MostlyAsleep::left_out(program, &self.recorded, run.time_ns());
        is_recorded.then(|| asleep.map_or(cost.wall_ns as f64, |asleep| asleep.awake_ns))
    }

    /// The share of the recorded time that the prediction for that machine lacks, without recording's cost in the program's
    /// threads. 0 if they about agree, or other programs had CPUs for as long.
    pub(super) fn unexplained(&self, run: &WatchedRun) -> f64 {
        let missing = self.missing(run);
        if missing > OFF { missing } else { 0.0 }
    }

    /// The same share, however small.
    pub(super) fn missing(&self, run: &WatchedRun) -> f64 {
        let Some(measured_ns) = self.measured_ns(run) else { return 0.0 };
        let cost = self
            .program()
            .overhead
            .and_then(|cost| cost.shares_of_target())
            .map_or(0.0, |(_, in_threads)| in_threads);
        let others_ns = self.program().overhead.map_or(0, |cost| cost.others_ns);
        if is_delay_by_others(run.time_ns() as u64, measured_ns as u64, others_ns) {
            return 0.0;
        }
        (1.0 - run.time_ns() / measured_ns - cost).max(0.0)
    }
}

impl Limits {
    /// Reasons to distrust the limits. Idle or deadlocked programs are not compared with the recording: their waits are no part
    /// of the predicted time.
    pub fn doubts(&self, overhead: Option<Overhead>) -> Vec<Finding> {
        let mut doubts = Vec::new();
        let Some(cost) = overhead.filter(|cost| cost.wall_ns > 0 && cost.target_ns > COMPUTES_NS) else {
            return doubts;
        };
        let shares = cost.shares_of_target();
        if let Some(limit) = self
            .at
            .first()
            .filter(|limit| !matches!(limit.kind, LimitKind::Idle { .. } | LimitKind::Deadlock { .. }))
        {
            let measured_ns = self.asleep.map_or(cost.wall_ns, |asleep| asleep.awake_ns as u64);
            let predicted_ns = limit.time_ns as u64;
            // The prediction excludes the cost of recording. So it may be shorter than the measured time by that cost,
            // but not longer.
            let recording = shares.map_or(0.0, |(all, _)| all);
            let off = 1.0 - limit.time_ns / measured_ns as f64;
            if off > OFF + recording || off < -OFF {
                doubts.push(Finding::UnlikeRun { predicted_ns, measured_ns, others_ns: cost.others_ns });
            }
        }
        if let Some((share, in_threads)) = shares
            && share > COSTLY
        {
            doubts.push(Finding::Costly { share, in_threads });
        }
        doubts
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpus::Cpus;
    use crate::finding::Severity;
    use crate::limit::Limit;

    fn limits(kind: LimitKind, time_ns: f64) -> Limits {
        let limit = Limit::known(Cpus::ONE, time_ns, kind);
        Limits { at: vec![limit], ..Limits::default() }
    }

    /// A prediction that differs from the recorded run lowers the trust, and so does a recording with a high cost.
    #[test]
    fn a_prediction_unlike_the_run_and_a_costly_recording_are_doubts() {
        let cost = |collector_ns| {
            Some(Overhead {
                wall_ns: 1_000_000_000,
                target_ns: 1_000_000_000,
                collector_ns,
                ..Overhead::default()
            })
        };
        let work = || LimitKind::Work { busy: 1.0, hidden: false };
        let dear = |share, in_threads| Finding::Costly { share, in_threads };
        // CPU time of longpole's own threads changes nothing in the recorded threads.
        assert_eq!(dear(0.49, 0.02).severity(), Severity::Information);
        assert_eq!(dear(0.49, 0.12).severity(), Severity::MayBeOff(None));
        assert_eq!(limits(work(), 0.92e9).doubts(cost(90_000_000)), []);
        assert_eq!(limits(work(), 0.92e9).doubts(None), []);
        assert_eq!(limits(LimitKind::Idle { busy: 0.5 }, 0.2e9).doubts(cost(0)), []);
        let off = limits(work(), 0.8e9).doubts(cost(0));
        assert_eq!(
            off,
            [Finding::UnlikeRun { predicted_ns: 800_000_000, measured_ns: 1_000_000_000, others_ns: 0 }]
        );
        assert_eq!(off[0].severity(), Severity::MayBeOff(Some(200_000_000)));
        assert_eq!(limits(work(), 0.8e9).doubts(cost(110_000_000)), [dear(0.11, 0.0)]);
        // Recording does not make a run shorter, so a prediction above the measured time is wrong whatever recording costs.
        assert!(matches!(limits(work(), 1.15e9).doubts(cost(90_000_000))[..], [Finding::UnlikeRun { .. }]));
        let in_threads = |hit_ns| Overhead { hit_ns, ..cost(0).expect("a cost") };
        let far = limits(work(), 1.7e9).doubts(Some(in_threads(490_000_000)));
        assert_eq!(far.iter().map(Finding::severity).collect::<Vec<_>>(), [Severity::Wrong, Severity::Wrong]);
        assert_eq!(far[1], dear(0.49, 0.49));
        // The CPU time of other programs may explain the difference between prediction and measured time.
        let busy = Overhead { others_ns: 600_000_000, ..cost(0).expect("a cost") };
        let delayed = limits(work(), 0.5e9).doubts(Some(busy));
        assert_eq!(delayed[0].severity(), Severity::MayBeOff(Some(500_000_000)));
    }
}
