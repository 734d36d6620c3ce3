//! What is known of requests of one kind.

use super::groups::SlowGroup;
use strum::IntoStaticStr;

/// What requests of one kind show.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Summary {
    /// Requests with begin and end.
    pub count: usize,
    /// Others: they were open when the recording began or ended.
    pub unfinished: usize,
    /// At least this long took the longest of those, ns.
    pub unfinished_ns: u64,
    /// From the first begin to the last end, ns.
    pub span_ns: u64,
    /// How long they took.
    pub latencies: Latencies,
    /// How many belong to the fast half.
    pub fast: usize,
    /// How many are the slow ones.
    pub slow: usize,
    /// Which these are.
    pub slow_group: SlowGroup,
    /// Causes; those first that slow requests have most more of than fast ones. Each column adds up to its mean latency.
    pub rows: Vec<Row>,
    /// What the 99th percentile would be without one cause's own part, the lowest first.
    pub without: Vec<WithoutRow>,
    /// Requests that were not followed to their begin.
    pub not_followed: usize,
    /// See [`super::Calls::entries_only`].
    pub entries_only: bool,
    /// See [`super::Calls::partly`].
    pub partly: bool,
}

/// Latencies, ns (nearest rank).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Latencies {
    /// Half of the requests take no longer.
    pub p50_ns: u64,
    /// Nine of ten.
    pub p90_ns: u64,
    /// 99 of 100.
    pub p99_ns: u64,
    /// The longest.
    pub longest_ns: u64,
    /// Mean of the fast half.
    pub fast_mean_ns: f64,
    /// Mean of the slow ones.
    pub slow_mean_ns: f64,
}

/// A cause, with what a request spends for it on average.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Row {
    /// Its kind.
    pub kind: RowKind,
    /// The function, the lock, the kind of wait and where it was, or the thread; empty if the kind says all.
    pub name: String,
    /// In the fast half, ns.
    pub fast_ns: f64,
    /// Half of the 95 % interval of that, ns, where samples were divided.
    pub fast_error_ns: f64,
    /// In the slow ones, ns.
    pub slow_ns: f64,
    /// Half of the 95 % interval of that, ns.
    pub slow_error_ns: f64,
    /// Of a lock: what threads did that had it, the longest first.
    pub details: Vec<Detail>,
}

impl Row {
    /// How much more it is in slow requests, ns.
    pub fn difference_ns(&self) -> f64 {
        self.slow_ns - self.fast_ns
    }
}

/// What a thread did that had a lock, while slow requests waited for that.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Detail {
    /// Name of the thread, without its number.
    pub by: String,
    /// What it did.
    pub kind: RowKind,
    /// As in [`Row::name`].
    pub name: String,
    /// In a slow request on average, ns.
    pub slow_ns: f64,
}

/// A kind of cause.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum RowKind {
    /// Computing a function.
    Computing,
    /// A lock that another thread had.
    Lock,
    /// A CPU that another thread of the program had.
    NoCpu,
    /// A CPU that something else had.
    NoCpuOthers,
    /// From being woken to being on a free CPU.
    Woken,
    /// A disk.
    Disk,
    /// The network.
    Peer,
    /// A sleep or a time limit.
    Timer,
    /// A process that is not recorded.
    Process,
    /// Another device or a signal.
    Other,
    /// Behind other requests of a thread.
    Queue,
    /// Not known.
    #[default]
    Unknown,
    /// The walk was not continued.
    NotFollowed,
}

/// What the 99th percentile would be without a cause: as if it took no time and nothing else became longer.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct WithoutRow {
    /// Kind of the cause.
    pub kind: RowKind,
    /// As in [`Row::name`].
    pub name: String,
    /// The 99th percentile would not be below this, ns.
    pub p99_ns: u64,
}
