//! Time of a predicted run that passes without computing, in words of the program. Recorded waits are in
//! [`crate::program::Recorded`].

use crate::critical_path::WeightedWait;
use crate::json::number;
use crate::predict::PathFacts;
use crate::program::Program;
use crate::schedule::{DelayKind, Why};
use crate::time::Ticks;
use rustc_hash::FxHashMap;
use serde::Serialize;
use std::collections::hash_map::Entry;

/// A kind of time that passes without computing.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, strum::IntoStaticStr)]
#[serde(tag = "kind", content = "object", rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum WaitKind {
    /// Time from releasing this object (a lock, a semaphore, a condition and the like) until a waiting thread acts.
    HandOver(String),
    /// Time from a wake-up by anything else until the woken thread acts.
    WakeUp,
    /// Time from creating a thread until the new thread acts.
    ThreadStart,
    /// Processor time that threads spend on waking other threads.
    Waking,
    /// Sleeping.
    Sleep,
    /// A ready thread waits to be put on a processor: during a switch, while an idle processor does not ask for
    /// threads, or because a quota is used up.
    Scheduling,
    /// Threads keep processors that other threads want, spinning for this lock.
    Spinning(String),
    /// Waiting for a device, or for something else outside the program.
    Device(String),
}

impl WaitKind {
    /// Its name in JSON.
    pub fn name(&self) -> &'static str {
        self.into()
    }

    /// The object or device that threads wait for, if the kind has one.
    pub fn object(&self) -> Option<&str> {
        match self {
            WaitKind::HandOver(object) | WaitKind::Spinning(object) | WaitKind::Device(object) => {
                Some(object)
            }
            _ => None,
        }
    }
}

/// All waits of one kind on one CPU count.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct WaitRow {
    /// Its kind.
    #[serde(flatten)]
    pub kind: WaitKind,
    /// Number of waits in the predicted run.
    pub count: u64,
    /// Sum of the lengths of all waits of this kind, nanoseconds.
    #[serde(serialize_with = "number")]
    pub length_ns: f64,
    /// Their part of the predicted time, nanoseconds: length on the path; with ideal sharing, Σ weight · virtual length.
    #[serde(serialize_with = "number")]
    pub weighted_ns: f64,
}

/// The rows of a schedule, the largest first.
pub(crate) fn rows(program: &Program, path: &PathFacts) -> Vec<WaitRow> {
    let mut sums: FxHashMap<WaitKind, WaitRow> = FxHashMap::default();
    let mut add = |kind: WaitKind, wait: &WeightedWait| {
        let (length_ns, ns) = (wait.length.as_ns_f64(), wait.weighted / Ticks::PER_NS as f64);
        match sums.entry(kind) {
            Entry::Occupied(sum) => {
                let row = sum.into_mut();
                row.count += wait.count;
                row.length_ns += length_ns;
                row.weighted_ns += ns;
            }
            Entry::Vacant(none) => {
                let kind = none.key().clone();
                none.insert(WaitRow { kind, count: wait.count, length_ns, weighted_ns: ns });
            }
        }
    };
    for wait in &path.waits {
        add(kind(program, wait.of), wait);
    }
    if let Some(waking) = &path.waking {
        add(WaitKind::Waking, waking);
    }
    let mut rows: Vec<WaitRow> = sums.into_values().collect();
    rows.sort_by(|a, b| b.weighted_ns.total_cmp(&a.weighted_ns).then_with(|| a.kind.cmp(&b.kind)));
    rows
}

/// The kind of wait, in words of the program.
pub(crate) fn kind(program: &Program, of: DelayKind) -> WaitKind {
    let name = |object: crate::program::ObjectId| {
        program.objects.get(object.0 as usize).cloned().unwrap_or_default()
    };
    match of {
        DelayKind::Woken(Some(Why::Object(object))) => WaitKind::HandOver(name(object)),
        DelayKind::Woken(Some(_)) => WaitKind::WakeUp,
        DelayKind::Woken(None) => WaitKind::ThreadStart,
        DelayKind::Clock(Why::Object(object)) => WaitKind::Device(name(object)),
        DelayKind::Clock(_) => WaitKind::Sleep,
        DelayKind::Scheduling => WaitKind::Scheduling,
        DelayKind::Spinning(object) => WaitKind::Spinning(name(object)),
    }
}
