//! What limits a program, as JSON: `limit` in `longpole-report/1`.

use crate::present::text::cpu_costs::CpuCostsJson;
use engine::experiment::Edit;
use engine::json::number;
use engine::limit::{
    Fix, FunctionShare, LedgerRow, Limit, LimitKind, Limits, LockUse, MostlyAsleep, ThreadUse,
};
use engine::program::{Endpoint, LockWaits, OtherUse};
use engine::report::Cpus;
use serde::Serialize;

/// The field `limit`.
#[derive(Serialize)]
pub(in crate::present) struct LimitsJson<'a> {
    at: Vec<LimitJson<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    fixes: Vec<FixJson<'a>>,
    /// Locks in the predicted run on the first CPU count.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    locks: Vec<LockUseJson<'a>>,
    #[serde(skip_serializing_if = "<[ThreadUse]>::is_empty")]
    threads: &'a [ThreadUse],
    /// Share of CPU time in the kernel by function, where ticks found any.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    in_kernel: Vec<KernelJson<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    more_threads: Option<MoreThreadsJson>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cpu_runs: Option<CpuCostsJson<'a>>,
    /// Requests over sockets, served ones first.
    #[serde(skip_serializing_if = "<[Endpoint]>::is_empty")]
    requests: &'a [Endpoint],
    /// Programs that were not recorded and had CPUs meanwhile.
    #[serde(skip_serializing_if = "<[OtherUse]>::is_empty")]
    other_programs: &'a [OtherUse],
    #[serde(skip_serializing_if = "Option::is_none")]
    asleep: Option<MostlyAsleep>,
}

/// The effect of one more thread of the group that computes most and whose threads do the same.
#[derive(Serialize)]
struct MoreThreadsJson {
    threads: usize,
    /// The share of the predicted time that is gained.
    gain: f64,
}

impl<'a> LimitsJson<'a> {
    pub(in crate::present) fn new(limits: &'a Limits) -> LimitsJson<'a> {
        LimitsJson {
            at: limits.at.iter().map(LimitJson::new).collect(),
            fixes: limits.fixes.iter().map(FixJson::new).collect(),
            locks: limits.locks.iter().map(LockUseJson::new).collect(),
            threads: &limits.threads,
            in_kernel: limits
                .functions
                .iter()
                .filter_map(|used| Some(KernelJson { function: &used.function, share: used.kernel? }))
                .collect(),
            more_threads: limits
                .more_threads
                .map(|more| MoreThreadsJson { threads: more.threads.saturating_add(1), gain: more.gain }),
            cpu_runs: limits.costs.as_ref().map(CpuCostsJson::new),
            requests: &limits.traffic,
            other_programs: &limits.others,
            asleep: limits.asleep,
        }
    }
}

#[derive(Serialize)]
struct LimitJson<'a> {
    cpus: Cpus,
    kind: &'static str,
    #[serde(serialize_with = "number")]
    time_ns: f64,
    /// Predicted time without the limit.
    #[serde(serialize_with = "number")]
    without_ns: f64,
    evidence: &'static str,
    #[serde(flatten)]
    of: Of<'a>,
    /// Other causes, in the ledger's order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    others: Vec<RowJson<'a>>,
}

/// Another cause that may limit.
#[derive(Serialize)]
struct RowJson<'a> {
    kind: &'static str,
    /// Least and most that is gained without it, as shares of the predicted time.
    least: f64,
    most: f64,
    evidence: &'static str,
    #[serde(flatten)]
    of: Of<'a>,
}

/// Fields that only some kinds have.
#[derive(Default, Serialize)]
struct Of<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    lock: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    locks: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    object: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    device: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thread: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    threads: Option<usize>,
    /// Threads that wait for the object, or want a CPU, on average.
    #[serde(skip_serializing_if = "Option::is_none")]
    waiting: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    function: Option<&'a str>,
    /// The function's share of what is computed there.
    #[serde(skip_serializing_if = "Option::is_none")]
    function_share: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    length_ns: Option<f64>,
    /// How many CPUs control groups let the program use, in hundredths.
    #[serde(skip_serializing_if = "Option::is_none")]
    quota_percent: Option<u32>,
    /// CPUs in use on average.
    #[serde(skip_serializing_if = "Option::is_none")]
    busy: Option<f64>,
    /// Whether the object is used like a lock.
    #[serde(skip_serializing_if = "Option::is_none")]
    is_lock: Option<bool>,
    /// Lock operations were recorded, but many were lost.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    is_lost: bool,
    /// The share of the program's CPU time that recording the locks would cost.
    #[serde(skip_serializing_if = "Option::is_none")]
    cost: Option<f64>,
    /// CPU time on the largest number of CPUs that the command was run on, divided by that on the smallest.
    #[serde(skip_serializing_if = "Option::is_none")]
    growth: Option<f64>,
    /// How often threads were woken in all.
    #[serde(skip_serializing_if = "Option::is_none")]
    wakings: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    for_nothing: Option<u64>,
    /// Samples that show it.
    #[serde(skip_serializing_if = "Option::is_none")]
    samples: Option<u64>,
    /// The share of threads' time that is unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    missing: Option<f64>,
    /// Waits for locks of the kernel; absent where they were not recorded.
    #[serde(skip_serializing_if = "Option::is_none")]
    kernel_locks: Option<KernelLocksJson>,
}

impl<'a> LimitJson<'a> {
    fn new(limit: &'a Limit) -> LimitJson<'a> {
        let row = |row: &'a LedgerRow| RowJson {
            kind: row.kind.name(),
            least: row.least,
            most: row.most,
            evidence: row.evidence.name(),
            of: Of::new(&row.kind),
        };
        LimitJson {
            cpus: limit.cpus,
            kind: limit.kind.name(),
            time_ns: limit.time_ns,
            without_ns: limit.without_ns,
            evidence: limit.evidence.name(),
            of: Of::new(&limit.kind),
            others: limit.others.iter().map(row).collect(),
        }
    }
}

impl<'a> Of<'a> {
    fn new(kind: &'a LimitKind) -> Of<'a> {
        let function = |function: &'a Option<String>| function.as_deref();
        match kind {
            LimitKind::Lock { lock, locks, waiting, threads, holder } => Of {
                lock: Some(lock),
                locks: Some(*locks),
                waiting: Some(*waiting),
                threads: Some(*threads),
                function: holder.as_ref().map(|part| part.function.as_str()),
                function_share: holder.as_ref().map(|part| part.share),
                ..Of::default()
            },
            LimitKind::HandOver { object } => Of { object: object.as_deref(), ..Of::default() },
            LimitKind::Quota { hundredths } => Of { quota_percent: Some(*hundredths), ..Of::default() },
            LimitKind::Cpus { wanting } => Of { waiting: Some(*wanting), ..Of::default() },
            LimitKind::Threads { threads, function: of, .. }
            | LimitKind::TooManyThreads { threads, function: of, .. } => {
                Of { threads: Some(*threads), function: function(of), ..Of::default() }
            }
            LimitKind::Sleepers { threads, function: of, answers, .. } => Of {
                threads: Some(*threads),
                function: function(of),
                device: answers.as_deref(),
                ..Of::default()
            },
            LimitKind::Serial { thread, function: of, length_ns, threads } => Of {
                thread: Some(thread),
                function: function(of),
                length_ns: Some(*length_ns),
                threads: Some(*threads),
                ..Of::default()
            },
            LimitKind::Polling { threads, every_ns, function: of } => Of {
                threads: Some(*threads),
                function: function(of),
                length_ns: Some(*every_ns),
                ..Of::default()
            },
            LimitKind::SpunWaits { waiting } => Of { waiting: Some(*waiting), ..Of::default() },
            LimitKind::Turns { threads, .. } => Of { threads: Some(*threads), ..Of::default() },
            LimitKind::Imbalance { function: of } => Of { function: function(of), ..Of::default() },
            LimitKind::Stage { thread, function: of }
            | LimitKind::BusyThread { thread, function: of, .. } => {
                Of { thread: Some(thread), function: function(of), ..Of::default() }
            }
            LimitKind::CacheLine { line, function: of, threads, .. } => {
                Of { object: Some(line), function: function(of), threads: Some(*threads), ..Of::default() }
            }
            LimitKind::CostsMore { growth, function: of, .. } => {
                Of { growth: Some(*growth), function: function(of), ..Of::default() }
            }
            LimitKind::SupportWork { calls, function: of, threads, lock_waits, .. } => Of {
                object: Some(calls),
                function: function(of),
                threads: Some(*threads),
                kernel_locks: lock_waits.map(KernelLocksJson::new),
                ..Of::default()
            },
            LimitKind::Permits { semaphore, threads, waiting, .. } => Of {
                object: Some(semaphore),
                threads: Some(*threads),
                waiting: Some(*waiting),
                ..Of::default()
            },
            LimitKind::WokenForNothing { object, wakings, for_nothing } => Of {
                object: Some(object),
                wakings: Some(*wakings),
                for_nothing: Some(*for_nothing),
                ..Of::default()
            },
            LimitKind::Device { device } => Of { device: Some(device), ..Of::default() },
            LimitKind::Idle { busy } | LimitKind::Work { busy, .. } => {
                Of { busy: Some(*busy), ..Of::default() }
            }
            unknown => Of::of_unknown(unknown),
        }
    }

    /// Kinds of which it is not known who waits for whom, or that have no fields.
    fn of_unknown(kind: &'a LimitKind) -> Of<'a> {
        match kind {
            // The numbers of open requests are in `requests`.
            LimitKind::Goroutines { lock, function: of, samples, busy } => Of {
                lock: Some(lock),
                function: of.as_deref(),
                samples: Some(*samples),
                busy: Some(*busy),
                ..Of::default()
            },
            LimitKind::OpenRequests { busy, .. } => Of { busy: Some(*busy), ..Of::default() },
            LimitKind::LocksNotRecorded { word, waiting, is_lock, is_lost, cost } => Of {
                object: Some(word),
                waiting: Some(*waiting),
                is_lock: Some(*is_lock),
                is_lost: *is_lost,
                cost: *cost,
                ..Of::default()
            },
            LimitKind::Unexplained { predicted_ns, measured_ns } => {
                Of { missing: Some(1.0 - predicted_ns / measured_ns), ..Of::default() }
            }
            LimitKind::NotKnown { missing } => Of { missing: Some(*missing), ..Of::default() },
            _ => Of::default(),
        }
    }
}

/// How long threads waited for locks of the kernel.
#[derive(Serialize)]
struct KernelLocksJson {
    waits: u64,
    /// Spinning: CPU time.
    spun_ns: u64,
    /// Asleep, or runnable.
    slept_ns: u64,
    longest_ns: u64,
    /// Share of the threads' time.
    share: f64,
}

impl KernelLocksJson {
    fn new(of: LockWaits) -> KernelLocksJson {
        let LockWaits { count, slept_ns, spun_ns, longest_ns, .. } = of;
        KernelLocksJson { waits: count, spun_ns, slept_ns, longest_ns, share: of.share() }
    }
}

/// The part of a function's CPU time that is in the kernel.
#[derive(Serialize)]
struct KernelJson<'a> {
    function: &'a str,
    share: f64,
}

#[derive(Serialize)]
struct FixJson<'a> {
    change: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    lock: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    parts: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    function: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    location: Option<&'a str>,
    /// The part of the function that remains.
    #[serde(skip_serializing_if = "Option::is_none")]
    factor: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cpus: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    threads: Option<usize>,
    /// The gain is the most that the change can bring.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    at_best: bool,
    gain: f64,
    gain_low: f64,
    gain_high: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    gain_at_largest: Option<f64>,
}

impl<'a> FixJson<'a> {
    fn new(fix: &'a Fix) -> FixJson<'a> {
        let mut json = FixJson {
            change: fix.edit.name(),
            lock: fix.lock.as_deref(),
            parts: None,
            function: fix.function.as_deref(),
            location: fix.location.as_deref(),
            factor: None,
            cpus: None,
            threads: None,
            at_best: fix.edit.is_at_best(),
            gain: fix.gain,
            gain_low: fix.band.0,
            gain_high: fix.band.1,
            gain_at_largest: fix.gain_at_largest,
        };
        match &fix.edit {
            Edit::SplitLock(_, parts) => json.parts = Some(*parts),
            Edit::Scale(_, factor) => json.factor = Some(*factor),
            Edit::Cpus(Cpus::Count(count)) => json.cpus = Some(count.get()),
            Edit::Divide(_, among) => json.threads = Some(*among),
            Edit::FewerThreads { kept, .. } => json.threads = Some(*kept),
            Edit::MoreThreads { threads, more, .. } | Edit::MoreSleepers { threads, more } => {
                json.threads = Some(threads.len().saturating_add(*more));
            }
            _ => {}
        }
        json
    }
}

#[derive(Serialize)]
struct LockUseJson<'a> {
    lock: &'a str,
    locks: usize,
    held_share: f64,
    waits: u64,
    #[serde(serialize_with = "number")]
    waited_ns: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    function: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    function_share: Option<f64>,
}

impl<'a> LockUseJson<'a> {
    fn new(lock: &'a LockUse) -> LockUseJson<'a> {
        let holder: Option<&FunctionShare> = lock.holder();
        LockUseJson {
            lock: &lock.lock,
            locks: lock.locks,
            held_share: lock.held_share,
            waits: lock.waits,
            waited_ns: lock.waited_ns,
            function: holder.map(|part| part.function.as_str()),
            function_share: holder.map(|part| part.share),
        }
    }
}
