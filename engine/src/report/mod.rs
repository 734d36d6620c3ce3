//! Plain results with units, confidence and loss. No formatting: that is `collector::present`.

mod build;
mod delays;
mod locks;
mod sampling_facts;

pub use crate::cpus::{Cpus, CpusError};
pub use crate::finding::{
    Finding, Holder, Names, ReplayReason, ReplayedObject, SeenWaiting, Severity, Stuck, StuckThread, Trust,
    WaitsFor, Yielded, is_delay_by_others,
};
pub use build::{Builder, ReportPart, report, report_by};
pub use delays::{WaitKind, WaitRow};
pub(crate) use delays::{kind as wait_kind, rows as wait_rows};
pub use sampling_facts::SampleFacts;

use crate::attribution::UsedBy;
use crate::event::Overhead;
use crate::json::{is_zero, number};
use crate::program::{LockSide, Recorded};
use rustc_hash::FxHashMap;
use serde::Serialize;
use std::collections::BTreeSet;

/// The level of detail of a report.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Detail {
    /// One row for each function.
    #[default]
    Functions,
    /// One row for each function, and one for each compute operation.
    Segments,
}

/// The extended critical path of a program for several CPU counts.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Report {
    /// One result for each CPU count asked for, in the order asked.
    pub results: Vec<CpuResult>,
    /// The program's locks. The lock with the largest share of the predicted time at any CPU count comes first.
    pub locks: Vec<LockRow>,
    /// Recorded facts about synchronization objects and waits, independent of the number of CPUs.
    pub recorded: Recorded,
    /// How far the results can be trusted, given the recording.
    pub trust: Trust,
    /// The cost of recording, if known.
    pub overhead: Option<Overhead>,
    /// Findings: deadlocks, waits without an end, loss.
    pub findings: Vec<Finding>,
    /// CPUs of the recorded machine, if known; may not be among those asked for.
    pub recorded_cpus: Option<u32>,
    /// Facts about the samples, if there are any.
    pub samples: Option<SampleFacts>,
    /// For advice: standard functions with the user's functions that call them.
    pub used_by: Vec<UsedBy>,
}

impl Report {
    /// Computing of these functions on the path on one CPU count, nanoseconds, including standard functions on their
    /// behalf; `None` if there are no functions. A standard function that is itself in `functions` counts with all of
    /// its computing.
    pub fn own_ns(&self, result: &CpuResult, functions: &BTreeSet<String>) -> Option<f64> {
        let part = |row: &FunctionRow| {
            if functions.contains(&row.function) {
                return Some(1.0);
            }
            let at = self.used_by.binary_search_by(|used| used.function.as_str().cmp(&row.function)).ok()?;
            let by = self.used_by.get(at)?.by.iter().filter(|(own, _)| functions.contains(own));
            by.map(|(_, part)| *part).reduce(|sum, part| sum + part)
        };
        let parts = result.functions.iter().filter_map(|row| Some(row.tet_ns * part(row)?));
        parts.reduce(|sum, ns| sum + ns)
    }

    /// The largest share of each function's time in the predicted time on any CPU count.
    pub fn largest_shares(&self, time_ns: impl Fn(&FunctionRow) -> f64) -> FxHashMap<&str, f64> {
        let mut shares: FxHashMap<&str, f64> = FxHashMap::default();
        for result in &self.results {
            for row in &result.functions {
                let share = shares.entry(&row.function).or_default();
                *share = share.max(result.share(time_ns(row)));
            }
        }
        shares
    }
}

/// The report's result for one CPU count.
#[derive(Clone, Debug, PartialEq)]
pub struct CpuResult {
    /// The CPU count.
    pub cpus: Cpus,
    /// Predicted time from start to end, nanoseconds; equals [`crate::predict::CpuPrediction::time_ns`].
    pub time_ns: f64,
    /// The shortest and the longest time that other costs of waiting on this number of CPUs would give, nanoseconds; `None`: both
    /// are near `time_ns`. Infinity: no longest time is known.
    pub may_be_ns: Option<(f64, f64)>,
    /// Predicted time on one CPU ÷ `time_ns`.
    pub speedup: f64,
    /// Time on the extended critical path that is computed with each lock held, nanoseconds: Σ weight · length, in the order
    /// of [`Report::locks`]. An upper bound on the delay by the lock.
    pub locks_held_ns: Vec<f64>,
    /// Time that passes without computing, by kind of wait, each kind with its share of the predicted time; the longest
    /// first.
    pub waits: Vec<WaitRow>,
    /// Functions, or other rows, with calls or time on the extended critical path, largest `tetid_ns` first.
    pub functions: Vec<FunctionRow>,
    /// Every segment with its weight; empty unless segments were asked for.
    pub segments: Vec<SegmentRow>,
}

impl CpuResult {
    /// A time's share in the predicted time.
    pub fn share(&self, ns: f64) -> f64 {
        if self.time_ns > 0.0 { ns / self.time_ns } else { 0.0 }
    }
}

/// A lock; its numbers are independent of the number of CPUs.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct LockRow {
    /// Unique name.
    pub lock: String,
    /// Number of acquisitions; each end of a condition wait counts.
    pub acquisitions: u64,
    /// Number of acquisitions that had to wait; `None` for a hand-written program.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub contended: Option<u64>,
    /// Recorded time for which threads waited for the lock, summed, nanoseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wait_ns: Option<f64>,
    /// Recorded time for which threads held the lock, summed, nanoseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hold_ns: Option<f64>,
    /// The function that took the lock most often, if a function is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub holder: Option<String>,
    /// For a read-write lock with readers: the part of these numbers that is for reading.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reading: Option<LockSide>,
}

/// A function's share of the extended critical path (2001, section 2.2).
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct FunctionRow {
    /// Unique name.
    pub function: String,
    /// Entries on segments whose weight is not 0.
    pub calls: u64,
    /// Σ weight · length of the segments with the function on top of the stack, nanoseconds. May be negative.
    #[serde(serialize_with = "number")]
    pub tet_ns: f64,
    /// Σ weight · length of the segments with the function anywhere on the stack, once per segment, nanoseconds.
    #[serde(serialize_with = "number")]
    pub tetid_ns: f64,
    /// Where the function begins, as `file:line`, if known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub location: Option<String>,
    /// All numbers come from exact probes; otherwise some come from samples.
    pub exact: bool,
    /// Half-width of the 95 % interval around `tet_ns`, by samples, the scheduler's chance and the cost of probe hits.
    /// `None`: it is right within half a point of the predicted time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tet_error_ns: Option<f64>,
    /// Half-width of the 95 % interval around `tetid_ns`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tetid_error_ns: Option<f64>,
    /// Samples with the function on the stack where it was not open as a function with probes.
    #[serde(skip_serializing_if = "is_zero")]
    pub samples: u64,
    /// Its probes were removed during the recording: later calls count for its callers.
    #[serde(rename = "folded")]
    pub probes_removed: bool,
    /// Whether the function had its probes for only a part of the time, so that there were more calls.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub calls_partial: bool,
    /// Entries were not recorded, so `calls` means nothing: for lines, files, binaries and functions that only samples show.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub uncounted: bool,
    /// Whether the function has probes while samples found inlined copies of it. Probes miss these copies, so their
    /// calls are not counted.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub partly_inlined: bool,
}

/// One compute operation and its weight.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SegmentRow {
    /// Thread name.
    pub thread: String,
    /// Index in the thread's list of operations.
    #[serde(rename = "op")]
    pub operation: usize,
    /// Function on top of the stack, if known.
    pub function: Option<String>,
    /// Start in the schedule of the weight, nanoseconds: on unlimited processors if all counts share one schedule.
    #[serde(serialize_with = "number")]
    pub start_ns: f64,
    /// End in that schedule, nanoseconds.
    #[serde(serialize_with = "number")]
    pub end_ns: f64,
    /// ∂T_P/∂length. May be above 1 or below 0.
    #[serde(serialize_with = "number")]
    pub weight: f64,
}
