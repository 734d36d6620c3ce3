//! `longpole slack`: what an improvement of each function gains for sure, as simulated, and at most.

use super::json::Findings;
use super::listing::{gained, headline, line, note, placed, share, unlike_predicted};
use crate::cell::duration;
use crate::present::frame::{Frame, more};
use crate::present::style::{Paint, Style};
use crate::present::words::short::short;
use engine::graph::{NamedActivity, SegmentTimes, SlackReport, SlackRow};
use engine::json::Number;
use engine::report::Trust;
use serde::Serialize;
use std::io::{self, Write};

/// A function with a smaller share of the run has no row.
const LEAST: f64 = 0.005;

/// Writes the first `top` functions that are large enough for a row.
pub fn text(
    report: &SlackReport,
    frame: &Frame,
    top: usize,
    style: &Style,
    out: &mut dyn Write,
) -> io::Result<()> {
    frame.head(style, out)?;
    headline(out, style, &sentence(report))?;
    unlike_predicted(report.length_ns, report.predicted_ns, style, out)?;
    let least = LEAST * report.length_ns;
    let worth: Vec<&SlackRow> = report.functions.iter().filter(|row| row.critical_path_ns >= least).collect();
    if !worth.is_empty() {
        let is_simulated = worth.iter().take(top).any(|row| row.simulated_ns.is_some());
        let titles = ["on path", "without it", "for sure"].into_iter();
        let titles: Vec<String> =
            titles.chain(is_simulated.then_some("simulated")).map(str::to_owned).collect();
        line(out, style, Paint::Bold, "FUNCTIONS", &titles)?;
        for row in worth.iter().take(top) {
            let mut cells =
                vec![duration(row.critical_path_ns), gained(row.zeroing_ns), gained(row.slack_ns)];
            if is_simulated {
                cells.push(row.simulated_ns.map_or("-".to_owned(), gained));
            }
            line(out, style, Paint::Plain, &placed(&row.function, row.location.as_deref()), &cells)?;
        }
        let rest = report.functions.len() - worth.len().min(top);
        more(out, rest, "function", "--json has all", style)?;
        let what = "Change of the run on unlimited CPUs if a function takes no time. On path: its time on the critical path. Without it: gained if locks are taken in the order of this run. For sure: gained in every case. Simulated: gained if locks may be taken in another order.";
        note(out, style, what)?;
        writeln!(out)?;
    }
    if !report.segments.is_empty() {
        segments(report, style, out)?;
    }
    frame.foot(&report.findings, Some("what-if --rank"), style, out)
}

fn sentence(report: &SlackReport) -> String {
    if let Some(deadlock) = super::listing::deadlock(&report.findings) {
        return deadlock;
    }
    let length = duration(report.length_ns);
    let Some(first) = report.functions.first().filter(|row| row.zeroing_ns > 0.0) else {
        return if !report.functions.is_empty() {
            format!(
                "No function alone shortens the run of {length} on unlimited CPUs: other paths are as long."
            )
        } else if report.length_ns > 0.0 {
            format!(
                "No function shortens the run of {length} on unlimited CPUs: its time is in none of them."
            )
        } else {
            "Nothing to make faster: no thread took any time here.".to_owned()
        };
    };
    let sure = if first.slack_ns < first.zeroing_ns {
        format!("; {} of it is sure while that order stays", duration(first.slack_ns))
    } else {
        String::new()
    };
    format!(
        "Without {} the run of {length} on unlimited CPUs would be {} ({}) shorter while locks are taken in this \
         order{sure}{}.",
        short(&first.function),
        duration(first.zeroing_ns),
        share(first.zeroing_ns, report.length_ns),
        super::paths::simulated_text(first.simulated_ns, report.length_ns),
    )
}

fn segments(report: &SlackReport, style: &Style, out: &mut dyn Write) -> io::Result<()> {
    let titles = ["length", "earliest", "latest", "slack", "free"].map(str::to_owned);
    line(out, style, Paint::Bold, "operation", &titles)?;
    for segment in &report.segments {
        let cells = [
            segment.length_ns,
            segment.early_start_ns,
            segment.late_start_ns,
            segment.total_slack_ns,
            segment.free_slack_ns,
        ];
        line(
            out,
            style,
            Paint::Plain,
            &operation(&segment.thread, segment.operation, &segment.what),
            &cells.map(duration),
        )?;
    }
    let what = "Earliest and latest start on unlimited CPUs; slack: how much later without making the run longer; \
                free: without delaying anything else.";
    writeln!(out)?;
    note(out, style, what)?;
    writeln!(out)
}

/// A segment: `f  T1:3`.
pub(super) fn operation(thread: &str, number: usize, what: &NamedActivity) -> String {
    format!("{}  {thread}:{number}", doing(what))
}

/// What a segment does, such as `f`, `io disk` or `sleep`.
pub(crate) fn doing(what: &NamedActivity) -> String {
    match what {
        NamedActivity::Compute(Some(function)) => short(function),
        NamedActivity::Compute(None) => "(no function)".to_owned(),
        NamedActivity::Io(device) => format!("io {device}"),
        NamedActivity::Sleep => "sleep".to_owned(),
        NamedActivity::WakeUp => "waking".to_owned(),
    }
}

/// Writes the report as JSON: `longpole-slack/1`.
pub fn json(report: &SlackReport, with_segments: bool, out: &mut dyn Write) -> io::Result<()> {
    let document = Document {
        schema: "longpole-slack/1",
        length_ns: Number(report.length_ns),
        functions: &report.functions,
        segments: with_segments.then_some(report.segments.as_slice()),
        trust: report.trust,
        findings: Findings(&report.findings),
    };
    super::json::write(&document, out)
}

#[derive(Serialize)]
struct Document<'a> {
    schema: &'static str,
    length_ns: Number,
    functions: &'a [SlackRow],
    #[serde(skip_serializing_if = "Option::is_none")]
    segments: Option<&'a [SegmentTimes]>,
    trust: Trust,
    findings: Findings<'a>,
}
