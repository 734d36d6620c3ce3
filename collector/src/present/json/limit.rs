//! What limits a program, as JSON: `limit` in `longpole-report/1`.

use crate::present::text::cpu_costs::CpuCostsJson;
use engine::experiment::Edit;
use engine::json::number;
use engine::limit::{
    Evidence, Fix, FunctionShare, LedgerRow, Limit, LimitKind, Limits, LockUse, MostlyAsleep, ThreadUse,
};
use engine::program::{Endpoint, OtherUse};
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
    #[serde(flatten)]
    kind: &'a LimitKind,
    #[serde(serialize_with = "number")]
    time_ns: f64,
    /// Predicted time without the limit.
    #[serde(serialize_with = "number")]
    without_ns: f64,
    evidence: Evidence,
    /// Other causes, in the ledger's order.
    #[serde(skip_serializing_if = "<[LedgerRow]>::is_empty")]
    others: &'a [LedgerRow],
}

impl<'a> LimitJson<'a> {
    fn new(limit: &'a Limit) -> LimitJson<'a> {
        let Limit { cpus, time_ns, kind, without_ns, evidence, others, .. } = limit;
        LimitJson {
            cpus: *cpus,
            kind,
            time_ns: *time_ns,
            without_ns: *without_ns,
            evidence: *evidence,
            others,
        }
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
