//! Texts for clients. They are made from the newest report, once for all clients and at most once a second.

use super::board::{Board, Now};
use super::metrics;
use crate::present::frame::Trust;
use crate::present::json;
use crate::present::screen::limit::{self, Words};
use engine::report::{CpuResult, Report};
use hyper::body::Bytes;
use serde::Serialize;
use serde_json::value::RawValue;
use std::cell::RefCell;
use std::rc::Rc;
use std::time::{Duration, Instant};

/// How long texts are reused. Less than a second, so that a page that asks every second always gets new ones.
const FRESH: Duration = Duration::from_millis(900);
/// Largest number of functions and locks in the page's tables.
const ROWS: usize = 100;

/// The texts for clients at one moment.
pub struct Texts {
    /// OpenMetrics.
    pub metrics: Bytes,
    /// The event `report`; empty before the first one.
    pub report: Bytes,
    /// The event `counts`.
    pub counts: Bytes,
    /// Number of the report from which the texts were made.
    pub number: u64,
}

/// Makes texts for clients when they are asked for.
pub struct Writer {
    board: Board,
    last: RefCell<Option<(Instant, Rc<Texts>)>>,
}

impl Writer {
    /// Makes texts from this board.
    pub fn new(board: Board) -> Writer {
        Writer { board, last: RefCell::new(None) }
    }

    /// Texts of now, or of less than `FRESH` ago.
    pub fn texts(&self) -> Rc<Texts> {
        let mut last = self.last.borrow_mut();
        if let Some((made, texts)) = &*last
            && made.elapsed() < FRESH
        {
            return Rc::clone(texts);
        }
        let now = self.board.now();
        // If the report is still the same, its text is reused.
        let known = last.take().filter(|(_, texts)| texts.number == now.number);
        let report = match known {
            Some((_, texts)) => texts.report.clone(),
            None => event("report", &report(&now)),
        };
        let texts = Rc::new(Texts {
            metrics: metrics::text(&now).into(),
            report,
            counts: event("counts", &Some(counts(&now))),
            number: now.number,
        });
        *last = Some((Instant::now(), Rc::clone(&texts)));
        texts
    }
}

/// A server-sent event for the page; empty if there is no value, or it cannot be written.
fn event(name: &str, value: &Option<impl Serialize>) -> Bytes {
    // serde_json writes no line ends, so a name cannot begin another event.
    let json = value.as_ref().and_then(|value| serde_json::to_string(value).ok());
    json.map(|json| format!("event: {name}\ndata: {json}\n\n").into()).unwrap_or_default()
}

#[derive(Serialize)]
struct ReportEvent<'a> {
    subject: &'a str,
    limit: Words,
    trust: Trust,
    /// The report as `top --json` writes it, with long tables shortened.
    report: Box<RawValue>,
}

#[derive(Serialize)]
struct CountsEvent {
    events: u64,
    lost: u64,
    /// Cost of recording lately, as a share of the target's CPU time.
    cost: Option<f64>,
    has_ended: bool,
}

fn report(now: &Now) -> Option<ReportEvent<'_>> {
    let (snapshot, stretch) = now.report.as_ref()?;
    let options = json::report::Options { live: Some(*stretch), ..json::report::Options::default() };
    let mut bytes = Vec::new();
    json::report::write(&shortened(&snapshot.report), &snapshot.limits, options, &mut bytes).ok()?;
    let report = RawValue::from_string(String::from_utf8(bytes).ok()?.trim_end().to_owned()).ok()?;
    let trust = Trust::of(&snapshot.limits, &snapshot.report.findings);
    Some(ReportEvent { subject: &now.subject, limit: limit::words(&snapshot.limits), trust, report })
}

/// The report with the first rows of each table.
fn shortened(report: &Report) -> Report {
    let result = |result: &CpuResult| CpuResult {
        functions: result.functions.iter().take(ROWS).cloned().collect(),
        locks_held_ns: result.locks_held_ns.iter().take(ROWS).copied().collect(),
        ..result.clone()
    };
    Report {
        results: report.results.iter().map(result).collect(),
        locks: report.locks.iter().take(ROWS).cloned().collect(),
        ..report.clone()
    }
}

fn counts(now: &Now) -> CountsEvent {
    CountsEvent {
        events: now.counts.events,
        lost: now.counts.loss.lost(),
        cost: now.counts.recent_overhead.or(now.counts.overhead).and_then(|cost| cost.share()),
        has_ended: now.has_ended,
    }
}
