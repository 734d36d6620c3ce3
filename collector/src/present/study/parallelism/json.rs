//! JSON: `longpole-parallelism/1`. Times are whole nanoseconds. `normalized_self_ns` of all functions (the row without a
//! name is code outside of functions) and `nobody_busy_ns` add up to `elapsed_ns`; so do those of all threads.

use crate::present::study::json::{Findings, write as write_line};
use engine::parallelism::{Advice, Link, Parallelism, ParallelismRow, ParallelismRowKind, StateTimes};
use engine::report::{Cpus, Trust};
use serde::Serialize;
use std::io::{self, Write};

/// Writes the first run, followed by all others.
pub fn write(runs: &[Parallelism], out: &mut dyn Write) -> io::Result<()> {
    let Some((first, others)) = runs.split_first() else { return Ok(()) };
    let document = Document {
        schema: "longpole-parallelism/1",
        run: RunJson::new(first),
        others: others.iter().map(RunJson::new).collect(),
        trust: first.trust,
        findings: Findings(&first.findings),
    };
    write_line(&document, out)
}

#[derive(Serialize)]
struct Document<'a> {
    schema: &'static str,
    #[serde(flatten)]
    run: RunJson<'a>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    others: Vec<RunJson<'a>>,
    trust: Trust,
    findings: Findings<'a>,
}

#[derive(Serialize)]
struct RunJson<'a> {
    cpus: Option<Cpus>,
    run: &'static str,
    elapsed_ns: u64,
    nobody_busy_ns: u64,
    busy: &'a [(u32, u64)],
    threads: u32,
    samples: u64,
    recording_ns: u64,
    creators_unknown: u32,
    first: Option<FirstJson<'a>>,
    rows: Vec<RowJson<'a>>,
}

impl<'a> RunJson<'a> {
    fn new(of: &'a Parallelism) -> RunJson<'a> {
        RunJson {
            cpus: of.cpus,
            run: if of.measured { "measured" } else { "predicted" },
            elapsed_ns: of.elapsed_ns,
            nobody_busy_ns: of.nobody_busy_ns,
            busy: &of.levels,
            threads: of.threads,
            samples: of.samples,
            recording_ns: of.recording_ns,
            creators_unknown: of.orphans,
            first: of.first().map(|(row, advice)| FirstJson {
                kind: row.kind,
                name: row.name.as_deref(),
                advice,
            }),
            rows: of.rows.iter().map(|row| RowJson::new(row, of)).collect(),
        }
    }
}

/// The row to change first.
#[derive(Serialize)]
struct FirstJson<'a> {
    kind: ParallelismRowKind,
    name: Option<&'a str>,
    advice: Advice,
}

#[derive(Serialize)]
struct RowJson<'a> {
    kind: ParallelismRowKind,
    name: Option<&'a str>,
    normalized_self_ns: u64,
    normalized_total_ns: u64,
    busy_ns: u64,
    spinning_ns: u64,
    blocked_ns: u64,
    ready_ns: u64,
    calls: Option<u64>,
    by_busy: &'a [(u32, u64)],
    #[serde(skip_serializing_if = "str::is_empty")]
    of: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    location: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error_self_ns: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error_total_ns: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    advice: Option<Advice>,
    total_by_busy: &'a [(u32, u64)],
    total: TotalJson,
    runnable: &'a StateTimes,
    #[serde(skip_serializing_if = "Option::is_none")]
    queue: Option<QueueJson<'a>>,
    callers: &'a [Link],
    callees: &'a [Link],
}

impl<'a> RowJson<'a> {
    fn new(row: &'a ParallelismRow, run: &Parallelism) -> RowJson<'a> {
        let is_object = matches!(
            row.kind,
            ParallelismRowKind::Lock | ParallelismRowKind::Barrier | ParallelismRowKind::Condition
        );
        RowJson {
            kind: row.kind,
            name: row.name.as_deref(),
            normalized_self_ns: row.normalized_self_ns,
            normalized_total_ns: row.normalized_total_ns,
            busy_ns: row.own.busy.ns,
            spinning_ns: row.own.spinning.ns,
            blocked_ns: row.own.blocked.ns,
            ready_ns: row.own.ready.ns,
            calls: row.calls,
            by_busy: &row.by_busy,
            of: row.of.name(),
            location: row.location.as_deref(),
            error_self_ns: row.error_self_ns,
            error_total_ns: row.error_total_ns,
            advice: run.advice(row),
            total_by_busy: &row.total_by_busy,
            total: TotalJson::new(&row.total),
            runnable: &row.own,
            queue: is_object.then(|| QueueJson {
                by_length: &row.queue,
                average_length: row.queue_length(),
                average_wait_ns: row.average_wait_ns(),
            }),
            callers: &row.callers,
            callees: &row.callees,
        }
    }
}

/// Times with all work done on the row's behalf; `runnable`: average number of runnable threads in each state.
#[derive(Serialize)]
struct TotalJson {
    busy_ns: u64,
    spinning_ns: u64,
    blocked_ns: u64,
    ready_ns: u64,
    busy_runnable: f64,
    spinning_runnable: f64,
    blocked_runnable: f64,
    ready_runnable: f64,
}

impl TotalJson {
    fn new(of: &StateTimes) -> TotalJson {
        TotalJson {
            busy_ns: of.busy.ns,
            spinning_ns: of.spinning.ns,
            blocked_ns: of.blocked.ns,
            ready_ns: of.ready.ns,
            busy_runnable: of.busy.runnable,
            spinning_runnable: of.spinning.runnable,
            blocked_runnable: of.blocked.runnable,
            ready_runnable: of.ready.runnable,
        }
    }
}

#[derive(Serialize)]
struct QueueJson<'a> {
    by_length: &'a [(u32, u64)],
    average_length: f64,
    average_wait_ns: Option<f64>,
}
