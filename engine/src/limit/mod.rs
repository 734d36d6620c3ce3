//! What limits a program: its predicted time is computed again with one constraint removed. (Coz and the 2001 paper do
//! so for functions; this module does so for everything else.) The constraint whose removal gains most is the limit
//! ([`ledger`]). If none gains 5 %, the limit is the largest part of the path: the work, or a wait.
//!
//! Only constraints that threads wait for are tried, the longest waits first: removing a constraint without waiters
//! gains nothing. This limits the number of runs; for large programs [`Search`] has a further limit.
//!
//! *One more thread* applies to threads that do the same and are busy most of the time: their computing is divided
//! among one thread more. A pool that is not recognized by this rule gets no such answer.

mod candidates;
mod causes;
mod changes;
mod extent;
mod first_asked;
mod goroutines_wait;
mod kind;
mod ledger;
mod model_fit;
mod order;
mod path_causes;
mod row;
mod search;
mod share_of;
#[cfg(test)]
mod tests;
mod threads;
mod watched_run;

pub use causes::idle::MostlyAsleep;
pub use causes::unrecorded_locks::NotSimulated;
pub use changes::fixes::Fix;
pub use changes::top_functions::{FunctionUse, Tenth};
pub use goroutines_wait::GoroutinesWait;
pub use kind::LimitKind;
pub use row::{Evidence, LedgerRow};
pub use search::{Found, Search, limits};
pub use share_of::{FunctionShare, Meanwhile};
pub use threads::uses::{LockUse, ThreadUse};

use crate::cpus::Cpus;
use crate::predict::CpuCosts;
use crate::program::{Endpoint, OtherUse};

/// A constraint that gains less than this share of the time is no limit.
pub const WORTH: f64 = 0.05;

/// What limits a program, and what can be done about it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Limits {
    /// The limit on the recorded machine (of a program written by hand: on the largest CPU count asked for), then on the
    /// largest CPU count asked for, if that is another one.
    pub at: Vec<Limit>,
    /// Changes on the first of the CPU counts, the largest gain first; at most three.
    pub fixes: Vec<Fix>,
    /// Locks that threads wait for on the first of the CPU counts, the longest waits first.
    pub locks: Vec<LockUse>,
    /// The gain of one more thread in the pool that does most of the work, on the first of the CPU counts.
    pub more_threads: Option<MoreThreads>,
    /// Functions that compute most, the largest first. Standard functions count for their callers.
    pub functions: Vec<FunctionUse>,
    /// What threads do on the first of the CPU counts, the busiest first. Threads that do the same share one entry.
    pub threads: Vec<ThreadUse>,
    /// CPU time of the program on several CPU counts, if it was run on them.
    pub costs: Option<CpuCosts>,
    /// Requests over sockets, the requests that the program serves first.
    pub traffic: Vec<Endpoint>,
    /// Programs that were not recorded and used CPUs during the recording, the largest first.
    pub others: Vec<OtherUse>,
    /// Child processes of the program that were not recorded, together.
    pub children: Option<OtherUse>,
    /// Set for a program that sleeps for most of its recording: only the time in which it is awake is predicted.
    pub asleep: Option<MostlyAsleep>,
}

/// The gain of one more thread in a pool of threads that do the same and compute most of the work.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MoreThreads {
    /// Number of threads in the pool.
    pub threads: usize,
    /// The share of the predicted time that one more thread saves.
    pub gain: f64,
}

/// What limits the program on one CPU count.
#[derive(Clone, Debug, PartialEq)]
pub struct Limit {
    /// The CPU count.
    pub cpus: Cpus,
    /// Predicted time, nanoseconds.
    pub time_ns: f64,
    /// What limits the program.
    pub kind: LimitKind,
    /// Predicted time without the limit, nanoseconds; `time_ns` if it is unknown what its removal saves.
    pub without_ns: f64,
    /// The limit's part of the critical path, or of the recording, although its removal may gain nothing.
    pub share: f64,
    /// How the gain and the share are known.
    pub evidence: Evidence,
    /// Other causes that gain at least [`WORTH`], or may, in the ledger's order.
    pub others: Vec<LedgerRow>,
}

impl Limit {
    /// Makes the limit from rows of the ledger; the first row is the limit.
    fn of(cpus: Cpus, time_ns: f64, rows: Vec<LedgerRow>) -> Limit {
        let mut rows = rows.into_iter();
        let Some(LedgerRow { kind, least, most, evidence }) = rows.next() else {
            return Limit::known(cpus, time_ns, LimitKind::Nothing);
        };
        // These causes slow only the recorded run, so removing them may save more time there.
        let is_of_recorded =
            matches!(kind, LimitKind::TooManyThreads { .. } | LimitKind::WokenForNothing { .. });
        let most_known = if is_of_recorded { least } else { most };
        let is_change = matches!(evidence, Evidence::Simulated | Evidence::Bounded);
        let goes = if is_change && !matches!(kind, LimitKind::Idle { .. }) { most_known } else { 0.0 };
        Limit {
            without_ns: time_ns * (1.0 - goes),
            kind,
            share: most,
            evidence,
            others: rows.collect(),
            cpus,
            time_ns,
        }
    }

    /// A limit without a row in the ledger: nothing is gained without it, as far as is known.
    pub fn known(cpus: Cpus, time_ns: f64, kind: LimitKind) -> Limit {
        Limit {
            cpus,
            time_ns,
            kind,
            without_ns: time_ns,
            share: 0.0,
            evidence: Evidence::Measured,
            others: Vec::new(),
        }
    }

    /// The same CPU count and time with another row as the limit.
    pub fn with(&self, row: &LedgerRow) -> Limit {
        Limit::of(self.cpus, self.time_ns, vec![row.clone()])
    }

    /// The share of the predicted time that is saved without the limit.
    pub fn gain(&self) -> f64 {
        if self.time_ns > 0.0 { 1.0 - self.without_ns / self.time_ns } else { 0.0 }
    }

    /// Other causes that may gain more than this limit, but cannot be simulated.
    pub fn may_be_more(&self) -> impl Iterator<Item = &LedgerRow> {
        let gain = self.gain();
        // A separate note reports the part of the run that is missing in the prediction.
        let is_told = |kind: &LimitKind| matches!(kind, LimitKind::Unexplained { .. });
        let may_be =
            move |row: &&LedgerRow| row.most > gain + WORTH && row.least < row.most && !is_told(&row.kind);
        self.others.iter().filter(may_be)
    }
}
