//! `longpole compare-metrics`: each function by all metrics, which metrics agree on the first function, and its gain.

use super::json::Findings;
use super::listing::{headline, note, share, signed};
use crate::cell::{duration, width};
use crate::cpu_words::on;
use crate::present::frame::{Frame, more};
use crate::present::style::{Paint, Style};
use crate::present::words::short::short;
use engine::json::Number;
use engine::metrics::{Metric, Metrics, MetricsRow};
use engine::report::{Cpus, Trust};
use serde::Serialize;
use std::io::{self, Write};

/// Width of a metric's column.
const CELL: usize = 9;
/// Least width of the column with names.
const NAME: usize = 17;
/// A function with a smaller share by every metric has no row.
const LEAST: f64 = 0.005;

/// Writes the first `top` functions that are large enough for a row.
pub fn text(
    metrics: &Metrics,
    frame: &Frame,
    top: usize,
    style: &Style,
    out: &mut dyn Write,
) -> io::Result<()> {
    frame.head(style, out)?;
    headline(out, style, &sentence(metrics))?;
    let is_worth = |row: &&MetricsRow| Metric::ALL.iter().any(|metric| metrics.share(row, *metric) >= LEAST);
    let worth: Vec<&MetricsRow> = metrics.functions.iter().filter(is_worth).collect();
    if !worth.is_empty() {
        let titles = Metric::ALL.map(|metric| name(metric).to_owned());
        line(out, style, Paint::Bold, "FUNCTIONS", titles.into_iter().chain(["change".to_owned()]))?;
        for row in worth.iter().take(top) {
            let cells = Metric::ALL.map(|metric| {
                let is_first = metrics.first(metric).is_some_and(|first| first.function == row.function);
                let mark = if is_first { "*" } else { "" };
                format!("{mark}{}", share(row.value_ns(metric), metrics.whole_ns(metric)))
            });
            let simulated = row.simulated_ns.map_or("-".to_owned(), |ns| signed(-ns, metrics.time_ns));
            line(out, style, Paint::Plain, &short(&row.function), cells.into_iter().chain([simulated]))?;
        }
        more(out, metrics.functions.len() - worth.len().min(top), "function", "--json has all", style)?;
        let what = format!(
            "* first function of the metric that the program's author can change. All metrics are about functions' own time. profile: of all CPU time. quartz: CPU time divided by the CPUs that are busy meanwhile. path: on the extended critical path. These are of the {} {}; slack (gained for sure), zeroing (gained while the order of locks stays) and benefit (gained at most) of the {} on unlimited CPUs. change: of the run {} without the function, in simulation.",
            duration(metrics.time_ns),
            on(metrics.cpus),
            duration(metrics.unlimited_ns),
            on(metrics.cpus),
        );
        note(out, style, &what)?;
        writeln!(out)?;
    }
    frame.foot(&metrics.findings, Some("what-if --rank"), style, out)
}

fn line(
    out: &mut dyn Write,
    style: &Style,
    paint: Paint,
    name: &str,
    cells: impl Iterator<Item = String>,
) -> io::Result<()> {
    let room = style.width.saturating_sub(CELL * (Metric::ALL.len() + 1)).clamp(NAME, 44);
    let name = style.fit(name, room);
    let mut line = format!("{name}{}", " ".repeat(room.saturating_sub(width(&name))));
    for cell in cells {
        let cell = style.text(&cell);
        line.push_str(&" ".repeat(CELL.saturating_sub(width(&cell))));
        line.push_str(&cell);
    }
    writeln!(out, "{}", style.paint(paint, line.trim_end()))
}

/// A metric's name for people.
fn name(metric: Metric) -> &'static str {
    match metric {
        Metric::Profile => "profile",
        Metric::Quartz => "quartz",
        Metric::CriticalPath => "path",
        Metric::Slack => "slack",
        Metric::Zeroing => "zeroing",
        Metric::Benefit => "benefit",
    }
}

/// A metric's name in JSON.
fn field(metric: Metric) -> &'static str {
    match metric {
        Metric::CriticalPath => "critical_path",
        Metric::Benefit => "maximum_benefit",
        other => name(other),
    }
}

/// Each function that at least one metric ranks first, with those metrics; the function with the most metrics comes
/// first.
fn named(metrics: &Metrics) -> Vec<(&MetricsRow, Vec<&'static str>)> {
    let mut named: Vec<(&MetricsRow, Vec<&'static str>)> = Vec::new();
    for metric in Metric::ALL {
        let Some(first) = metrics.first(metric) else { continue };
        match named.iter_mut().find(|(row, _)| row.function == first.function) {
            Some((_, by)) => by.push(name(metric)),
            None => named.push((first, vec![name(metric)])),
        }
    }
    named.sort_by_key(|(_, by)| std::cmp::Reverse(by.len()));
    named
}

/// A function whose removal gains less than this share of the time is no answer.
const LITTLE: f64 = 0.01;

fn is_little(row: &MetricsRow, metrics: &Metrics) -> bool {
    row.simulated_ns.is_some_and(|ns| ns < LITTLE * metrics.time_ns)
}

fn sentence(metrics: &Metrics) -> String {
    if let Some(deadlock) = super::listing::deadlock(&metrics.findings) {
        return deadlock;
    }
    let gain = |row: &MetricsRow| match row.simulated_ns {
        Some(ns) => format!("gains {} in simulation", share(ns, metrics.time_ns)),
        None => "cannot be left out in simulation".to_owned(),
    };
    match &named(metrics)[..] {
        [] if metrics.time_ns > 0.0 => {
            "No function of the program itself is known to take time here, so no metric names one: record with samples or probes, and a program with symbols."
                .to_owned()
        }
        [] => "Nothing to make faster: no thread took any time here.".to_owned(),
        named if named.iter().all(|(row, _)| is_little(row, metrics)) => format!(
            "No function that a metric names gains as much as {:.0} % of the time {}: look at locks and waits (`longpole report`).",
            LITTLE * 100.0,
            on(metrics.cpus)
        ),
        [(row, by)] if by.len() == Metric::ALL.len() => {
            format!(
                "All metrics agree on {}: without it the run {} {}.",
                short(&row.function),
                on(metrics.cpus),
                gain(row)
            )
        }
        named => {
            let parts: Vec<String> = named
                .iter()
                .map(|(row, by)| {
                    let verb = if by.len() == 1 { "names" } else { "agree on" };
                    format!("{} {verb} {}, which {}", listed(by), short(&row.function), gain(row))
                })
                .collect();
            let text = parts.join("; ");
            let mut letters = text.chars();
            let first = letters.next().map(|letter| letter.to_ascii_uppercase());
            format!("{}{} {}.", first.map(String::from).unwrap_or_default(), letters.as_str(), on(metrics.cpus))
        }
    }
}

/// Names in a sentence: `a, b and c`.
fn listed(names: &[&str]) -> String {
    match names {
        [] => String::new(),
        [one] => (*one).to_owned(),
        [all @ .., last] => format!("{} and {last}", all.join(", ")),
    }
}

/// Writes the metrics as JSON: `longpole-compare-metrics/1`.
pub fn json(metrics: &Metrics, out: &mut dyn Write) -> io::Result<()> {
    let first = Metric::ALL.iter().map(|metric| {
        let row = metrics.first(*metric);
        FirstJson {
            metric: field(*metric),
            function: row.map(|row| row.function.as_str()),
            simulated_ns: row.and_then(|row| row.simulated_ns).map(Number),
        }
    });
    let document = Document {
        schema: "longpole-compare-metrics/1",
        cpus: metrics.cpus,
        time_ns: Number(metrics.time_ns),
        unlimited_ns: Number(metrics.unlimited_ns),
        busy_ns: Number(metrics.busy_ns),
        first: first.collect(),
        functions: metrics.functions.iter().map(FunctionJson::new).collect(),
        trust: metrics.trust,
        findings: Findings(&metrics.findings),
    };
    super::json::write(&document, out)
}

#[derive(Serialize)]
struct Document<'a> {
    schema: &'static str,
    cpus: Cpus,
    time_ns: Number,
    unlimited_ns: Number,
    busy_ns: Number,
    first: Vec<FirstJson<'a>>,
    functions: Vec<FunctionJson<'a>>,
    trust: Trust,
    findings: Findings<'a>,
}

/// The first function by a metric; `null` if there is none.
#[derive(Serialize)]
struct FirstJson<'a> {
    metric: &'static str,
    function: Option<&'a str>,
    simulated_ns: Option<Number>,
}

#[derive(Serialize)]
struct FunctionJson<'a> {
    function: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    location: Option<&'a str>,
    is_foreign: bool,
    profile_ns: Number,
    quartz_ns: Number,
    critical_path_ns: Number,
    slack_ns: Number,
    zeroing_ns: Number,
    maximum_benefit_ns: Number,
    #[serde(skip_serializing_if = "Option::is_none")]
    simulated_ns: Option<Number>,
}

impl<'a> FunctionJson<'a> {
    fn new(row: &'a MetricsRow) -> FunctionJson<'a> {
        let of = |metric| Number(row.value_ns(metric));
        FunctionJson {
            function: &row.function,
            location: row.location.as_deref(),
            is_foreign: row.is_foreign,
            profile_ns: of(Metric::Profile),
            quartz_ns: of(Metric::Quartz),
            critical_path_ns: of(Metric::CriticalPath),
            slack_ns: of(Metric::Slack),
            zeroing_ns: of(Metric::Zeroing),
            maximum_benefit_ns: of(Metric::Benefit),
            simulated_ns: row.simulated_ns.map(Number),
        }
    }
}
