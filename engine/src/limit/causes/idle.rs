//! Whether a program waited for work or for time while it was recorded. The prediction may not show this: waits that
//! never ended are not part of it, and the limit of a few milliseconds of computing is not the limit of the recorded
//! time.

use super::loaded::loaded;
use crate::json::number;
use crate::limit::{Limit, LimitKind};
use crate::program::{Program, Recorded, RecordedWait};
use crate::time::Ticks;
use serde::Serialize;

/// CPUs that an idle program uses at most, on average.
const BUSY: f64 = 0.1;

/// Facts about a program that waited for work or for time while it was recorded.
#[derive(Clone, Copy, Debug)]
pub(in crate::limit) struct Rest {
    pub(in crate::limit) wall_ns: f64,
    /// CPUs that the program used, on average.
    pub(in crate::limit) busy: f64,
}

impl Rest {
    /// `None` if the program computed, was held up by something, or clients waited for it, or if the recording lacks
    /// the facts.
    pub(in crate::limit) fn of(program: &Program, recorded: &Recorded) -> Option<Rest> {
        if loaded(recorded).is_some() {
            return None;
        }
        let wall_ns = program.overhead.map(|cost| cost.wall_ns).filter(|wall_ns| *wall_ns > 0)? as f64;
        let computed = program.compute_times();
        let all = computed.functions.iter().fold(computed.elsewhere.0, |sum, own| sum.saturating_add(own.0));
        let busy = Ticks(all).as_ns_f64() / wall_ns;
        let sum = |counts: fn(&RecordedWait) -> bool| {
            let waits = recorded.waits.iter().filter(|wait| counts(wait));
            waits.map(|wait| wait.wait_ns as f64).sum::<f64>()
        };
        let held_up = sum(RecordedWait::is_held_up) + program.trust.unknown_ns as f64;
        let rests = sum(RecordedWait::is_rest);
        (busy < BUSY && rests > wall_ns / 2.0 && rests > held_up).then_some(Rest { wall_ns, busy })
    }
}

/// CPUs that a program used on average while it was awake, as measured, without the cost of recording in its threads.
/// `None`: not known, as for a program written by hand.
pub(in crate::limit) fn measured_busy(program: &Program, asleep: Option<&MostlyAsleep>) -> Option<f64> {
    let cost = program.overhead.filter(|cost| cost.wall_ns > 0 && cost.target_ns > 0)?;
    let awake_ns = asleep.map_or(cost.wall_ns as f64, |asleep| asleep.awake_ns);
    (awake_ns > 0.0).then(|| cost.target_ns.saturating_sub(cost.in_threads_ns()) as f64 / awake_ns)
}

/// A program sleeps for most of its recording, outside of its predicted time: nothing ended that sleep, or the program
/// had nothing to do.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct MostlyAsleep {
    /// The time in which any thread ran or was runnable, nanoseconds.
    #[serde(serialize_with = "number")]
    pub awake_ns: f64,
    /// The recording's length, nanoseconds.
    #[serde(serialize_with = "number")]
    pub wall_ns: f64,
}

impl MostlyAsleep {
    /// The sleep of a program; `None` if the program is mostly awake, its sleep is part of the limit's time, or the
    /// limit already says so.
    pub(in crate::limit) fn of(
        program: &Program,
        recorded: &Recorded,
        limit: &Limit,
    ) -> Option<MostlyAsleep> {
        let is_told = !limit.kind.is_known()
            || matches!(limit.kind, LimitKind::Idle { .. } | LimitKind::Deadlock { .. });
        MostlyAsleep::left_out(program, recorded, limit.time_ns).filter(|_| !is_told)
    }

    /// Like [`MostlyAsleep::of`], but for any limit; `time_ns` is the predicted time.
    pub(in crate::limit) fn left_out(
        program: &Program,
        recorded: &Recorded,
        time_ns: f64,
    ) -> Option<MostlyAsleep> {
        let wall_ns = program.overhead.map(|cost| cost.wall_ns).filter(|wall_ns| *wall_ns > 0)? as f64;
        let asleep_ns = (recorded.asleep_ns as f64).min(wall_ns);
        let is_left_out = asleep_ns > wall_ns / 2.0 && time_ns < wall_ns - asleep_ns / 2.0;
        (is_left_out && time_ns > 0.0).then_some(MostlyAsleep { awake_ns: wall_ns - asleep_ns, wall_ns })
    }
}
