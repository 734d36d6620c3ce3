//! Single requests as JSON: schema `longpole-requests/1`. Times are nanoseconds.

use super::finding::Findings;
use engine::json::Number;
use engine::report::Finding;
use engine::requests::{CauseKind, CauseRow, HolderDetail, RequestSummary, SlowGroup, WithoutRow};
use serde::Serialize;
use std::io::{self, Write};

/// The schema's name and version.
pub const SCHEMA: &str = "longpole-requests/1";

/// Writes the requests that are calls of `functions` as one line, with at most `top` causes.
pub fn write(
    summary: &RequestSummary,
    functions: &[String],
    top: Option<usize>,
    findings: &[Finding],
    mut out: impl Write,
) -> io::Result<()> {
    let seconds = summary.span_ns as f64 / 1e9;
    let shown = top.unwrap_or(usize::MAX);
    let json = RequestsJson {
        schema: SCHEMA,
        functions,
        requests: summary.count,
        per_second: (seconds > 0.0).then(|| Number(summary.count as f64 / seconds)),
        span_ns: summary.span_ns,
        unfinished: Unfinished { requests: summary.unfinished, longest_at_least_ns: summary.unfinished_ns },
        latency_ns: LatencyJson {
            p50: summary.latencies.p50_ns,
            p90: summary.latencies.p90_ns,
            p99: summary.latencies.p99_ns,
            max: summary.latencies.longest_ns,
        },
        fast: GroupJson {
            group: "half",
            requests: summary.fast,
            mean_ns: Number(summary.latencies.fast_mean_ns),
        },
        slow: GroupJson {
            group: match summary.slow_group {
                SlowGroup::Percent => "percent",
                SlowGroup::Ten => "ten",
                SlowGroup::Tenth => "tenth",
                SlowGroup::One => "one",
            },
            requests: summary.slow,
            mean_ns: Number(summary.latencies.slow_mean_ns),
        },
        causes: summary.rows.iter().take(shown).map(cause).collect(),
        without: summary.without.get(..shown).unwrap_or(&summary.without),
        not_followed: summary.not_followed,
        entries_only: summary.entries_only,
        partly_probed: summary.partly,
        findings: Findings(findings),
    };
    engine::program::json::write_value(&json, &mut out)?;
    out.write_all(b"\n")
}

#[derive(Serialize)]
struct RequestsJson<'a> {
    schema: &'static str,
    /// The functions whose calls are the requests.
    functions: &'a [String],
    requests: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    per_second: Option<Number>,
    span_ns: u64,
    unfinished: Unfinished,
    latency_ns: LatencyJson,
    fast: GroupJson,
    slow: GroupJson,
    /// The causes, ordered by how much more time slow requests spend on a cause than fast ones.
    causes: Vec<CauseJson<'a>>,
    /// The 99th percentile without each cause's own part, the lowest first.
    without: &'a [WithoutRow],
    not_followed: usize,
    entries_only: bool,
    partly_probed: bool,
    findings: Findings<'a>,
}

#[derive(Serialize)]
struct Unfinished {
    requests: usize,
    longest_at_least_ns: u64,
}

#[derive(Serialize)]
struct LatencyJson {
    p50: u64,
    p90: u64,
    p99: u64,
    max: u64,
}

#[derive(Serialize)]
struct GroupJson {
    group: &'static str,
    requests: usize,
    mean_ns: Number,
}

#[derive(Serialize)]
struct CauseJson<'a> {
    kind: CauseKind,
    name: &'a str,
    fast_ns: Number,
    fast_error_ns: Number,
    slow_ns: Number,
    slow_error_ns: Number,
    difference_ns: Number,
    /// For a lock: what its holders did while requests waited.
    #[serde(skip_serializing_if = "<[HolderDetail]>::is_empty")]
    held_by: &'a [HolderDetail],
}

fn cause(row: &CauseRow) -> CauseJson<'_> {
    CauseJson {
        kind: row.kind,
        name: &row.name,
        fast_ns: Number(row.fast_ns),
        fast_error_ns: Number(row.fast_error_ns),
        slow_ns: Number(row.slow_ns),
        slow_error_ns: Number(row.slow_error_ns),
        difference_ns: Number(row.difference_ns()),
        held_by: &row.details,
    }
}
