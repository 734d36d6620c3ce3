//! The result for requests of one kind: latencies and their causes.

use super::groups::SlowGroup;
use crate::json::number;
pub use crate::program::CauseKind;
use serde::Serialize;

/// Latencies of requests of one kind, and their causes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RequestSummary {
    /// Requests whose begin and end are known.
    pub count: usize,
    /// Requests that were open when the recording began or ended.
    pub unfinished: usize,
    /// The longest of the unfinished requests took at least this long, ns.
    pub unfinished_ns: u64,
    /// Time from the first request's begin to the last request's end, ns.
    pub span_ns: u64,
    /// Latencies of the requests.
    pub latencies: Latencies,
    /// Number of requests in the fast half.
    pub fast: usize,
    /// Number of slow requests.
    pub slow: usize,
    /// The rule by which requests count as slow.
    pub slow_group: SlowGroup,
    /// Causes, ordered by how much more time slow requests spend on a cause than fast ones. Each column adds up to its
    /// mean latency.
    pub rows: Vec<CauseRow>,
    /// The 99th percentile without each cause's own part, the lowest first.
    pub without: Vec<WithoutRow>,
    /// Number of requests whose path was not followed back to their beginning.
    pub not_followed: usize,
    /// See [`super::Calls::entries_only`].
    pub entries_only: bool,
    /// See [`super::Calls::partly`].
    pub partly: bool,
}

/// Latencies, ns (nearest rank).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Latencies {
    /// The median.
    pub p50_ns: u64,
    /// The 90th percentile.
    pub p90_ns: u64,
    /// The 99th percentile.
    pub p99_ns: u64,
    /// The longest latency.
    pub longest_ns: u64,
    /// Mean of the fast half.
    pub fast_mean_ns: f64,
    /// Mean of the slow requests.
    pub slow_mean_ns: f64,
}

/// A cause, with the mean time that a request spends on it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CauseRow {
    /// The cause's kind.
    pub kind: CauseKind,
    /// The function, the lock, the kind of wait with its function, or the thread; empty if the kind alone describes the
    /// cause.
    pub name: String,
    /// Mean of the fast half, ns.
    pub fast_ns: f64,
    /// Half of the 95 % interval of `fast_ns`, ns, from dividing time by samples.
    pub fast_error_ns: f64,
    /// Mean of the slow requests, ns.
    pub slow_ns: f64,
    /// Half of the 95 % interval of `slow_ns`, ns.
    pub slow_error_ns: f64,
    /// For a lock: what its holders did while slow requests waited; for a queue: what its thread did. The longest first.
    pub details: Vec<HolderDetail>,
}

impl CauseRow {
    /// How much more time slow requests spend on this cause than fast ones, ns.
    pub fn difference_ns(&self) -> f64 {
        self.slow_ns - self.fast_ns
    }
}

/// What a lock's holder, or the thread of a queue, did while slow requests waited.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct HolderDetail {
    /// Name of that thread, without its number.
    #[serde(rename = "thread")]
    pub by: String,
    /// The kind of what it did.
    pub kind: CauseKind,
    /// The name, as in [`CauseRow::name`].
    pub name: String,
    /// Mean time in a slow request, ns.
    #[serde(serialize_with = "number")]
    pub slow_ns: f64,
}

/// The 99th percentile without a cause: as if the cause took no time and nothing else became longer.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct WithoutRow {
    /// Kind of the cause.
    pub kind: CauseKind,
    /// The name, as in [`CauseRow::name`].
    pub name: String,
    /// The 99th percentile without the cause is at least this, ns.
    #[serde(rename = "p99_without_ns")]
    pub p99_ns: u64,
}
