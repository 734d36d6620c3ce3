//! A report as text: limits, predicted times, functions × CPU counts, trust, findings.

use super::segments;
use crate::cell::{counted, duration, file_name, grouped, percent, width};
use crate::present::frame::Frame;
use crate::present::style::{Paint, Style, cpu_title};
use crate::present::table::{self, Layout};
use crate::present::words::finding::sentence;
use engine::attribution::Grouping;
use engine::report::{CpuResult, Finding, FunctionRow, Report, SampleFacts, Trust};
use std::collections::BTreeMap;
use std::io::{self, Write};

/// What the report shows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// What the rows of the table stand for.
    pub by: By,
    /// Rows in the table; `None`: [`FUNCTIONS`].
    pub top: Option<usize>,
    /// Whether locks that no thread waited for are shown, too.
    pub all: bool,
    /// Whether a table of all segments is shown, too.
    pub segments: bool,
    /// Whether the stacks of waits are shown, too.
    pub stacks: bool,
}

/// What the rows of the table stand for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum By {
    /// A function.
    #[default]
    Function,
    /// A lock.
    Lock,
    /// A source line.
    Line,
    /// A source file.
    File,
    /// A binary.
    Module,
    /// A kind of wait.
    Wait,
    /// A thread, or several threads that do the same.
    Thread,
}

impl By {
    /// The grouping of a report that has these rows.
    pub fn grouping(self) -> Grouping {
        match self {
            By::Function | By::Lock | By::Wait | By::Thread => Grouping::Function,
            By::Line => Grouping::Line,
            By::File => Grouping::File,
            By::Module => Grouping::Module,
        }
    }

    /// The word for a row.
    fn noun(self) -> &'static str {
        match self {
            By::Function => "function",
            By::Lock => "lock",
            By::Line => "line",
            By::File => "file",
            By::Module => "binary",
            By::Wait => "wait",
            By::Thread => "thread",
        }
    }
}

/// Rows shown by default.
pub const FUNCTIONS: usize = 10;

/// Largest number of findings shown; the JSON has all findings.
const FINDINGS: usize = 20;

/// Writes the long table.
pub fn write(
    report: &Report,
    frame: &Frame,
    options: Options,
    style: &Style,
    mut out: impl Write,
) -> io::Result<()> {
    let out = &mut out;
    frame.head(style, out)?;
    functions(out, report, options, style)?;
    if options.segments {
        segments::write(out, report, style)?;
    }
    closing(out, report, style)?;
    findings(out, &report.findings, style)
}

/// The facts about the recording, except findings.
pub(in crate::present) fn closing(out: &mut impl Write, report: &Report, style: &Style) -> io::Result<()> {
    trust(out, &report.trust, style)?;
    if let Some(facts) = &report.samples {
        samples(out, facts, style)?;
    }
    if let Some(cost) = &report.overhead {
        let text = format!("Cost: {}.", crate::present::overhead(cost));
        table::wrap(out, style, Paint::Plain, "", &style.text(&text), "      ")?;
    }
    Ok(())
}

/// One function, with its row for each CPU count.
struct Line<'a> {
    name: &'a str,
    location: Option<&'a str>,
    marks: Marks,
    rows: Vec<Option<&'a FunctionRow>>,
}

/// Remarks after a function's name.
#[derive(Clone, Copy, Debug, Default)]
struct Marks {
    probes_removed: bool,
    sampled: bool,
    inlined: bool,
    /// The function's calls were counted.
    counted: bool,
    /// Calls were counted for a part of the time only.
    partly: bool,
}

impl Marks {
    fn text(self) -> String {
        let marks = [
            (self.probes_removed, if self.sampled { "probes removed" } else { "probes removed, see below" }),
            (self.inlined, "partly inlined"),
            (self.sampled && !self.counted, "sampled"),
            (self.sampled && self.counted, "partly sampled"),
        ];
        let marks: Vec<&str> = marks.iter().filter(|(is, _)| *is).map(|(_, mark)| *mark).collect();
        if marks.is_empty() { String::new() } else { format!("  [{}]", marks.join(", ")) }
    }
}

/// Functions; those with the largest self share on any CPU count come first, since most time can be gained there.
fn lines(report: &Report) -> Vec<Line<'_>> {
    let mut by_name: BTreeMap<&str, Line<'_>> = BTreeMap::new();
    for (column, result) in report.results.iter().enumerate() {
        for row in &result.functions {
            let line = by_name.entry(&row.function).or_insert_with(|| Line {
                name: &row.function,
                location: row.location.as_deref(),
                marks: Marks::default(),
                rows: vec![None; report.results.len()],
            });
            line.marks.probes_removed |= row.probes_removed;
            line.marks.inlined |= row.partly_inlined;
            line.marks.sampled |= !row.exact;
            line.marks.counted |= !row.uncounted;
            line.marks.partly |= row.calls_partial;
            line.rows[column] = Some(row);
        }
    }
    let most = |line: &Line<'_>, measure: fn(&FunctionRow) -> f64| {
        let shares = line.rows.iter().zip(&report.results);
        let shares = shares.filter_map(|(row, result)| row.map(|row| result.share(measure(row))));
        shares.fold(f64::NEG_INFINITY, f64::max)
    };
    let mut lines: Vec<Line<'_>> = by_name.into_values().collect();
    lines.sort_by(|a, b| {
        let own = most(b, |row| row.tet_ns).total_cmp(&most(a, |row| row.tet_ns));
        own.then(most(b, |row| row.tetid_ns).total_cmp(&most(a, |row| row.tetid_ns)))
    });
    lines
}

fn functions(out: &mut impl Write, report: &Report, options: Options, style: &Style) -> io::Result<()> {
    if report.results.is_empty() {
        return Ok(());
    }
    let count = report.results.len();
    // Shares and times are next to each other if there is room.
    let wide = LABEL + count * WIDE_CELL <= style.width;
    let cell = if wide { WIDE_CELL } else { NARROW_CELL };
    let layout = Layout::new(style, count, cell, LABEL);
    let lines = lines(report);
    let shown = options.top.unwrap_or(FUNCTIONS).min(lines.len());
    for block in (0..count).collect::<Vec<_>>().chunks(layout.cells_per_block) {
        let results: Vec<&CpuResult> = block.iter().map(|&column| &report.results[column]).collect();
        predicted(out, &layout, style, &results)?;
        if shown > 0 {
            let what = format!(
                "Share of the predicted time on the critical path: self = in the {} itself, total = with all it calls.{}",
                options.by.noun(),
                style.text(&how_exact(&lines[..shown]))
            );
            writeln!(out)?;
            table::wrap(out, style, Paint::Dim, "", &what, "")?;
            writeln!(out)?;
        }
        for line in &lines[..shown] {
            function(out, &layout, style, line, block, &results, wide)?;
        }
        writeln!(out)?;
        super::delays::write(out, &layout, style, &results)?;
    }
    if lines.len() > shown {
        let rest = lines.len() - shown;
        let more =
            format!("{} with smaller shares: --top {} shows all.", more_rows(rest, options.by), lines.len());
        writeln!(out, "{more}\n")?;
    }
    Ok(())
}

/// Says which of the numbers are not exact, if any.
fn how_exact(lines: &[Line<'_>]) -> String {
    let mut rows = lines.iter().flat_map(|line| line.rows.iter().flatten());
    let with_error = rows.any(|row| row.tet_error_ns.is_some() || row.tetid_error_ns.is_some());
    let partly = lines.iter().any(|line| line.marks.partly);
    let mut text = String::new();
    if with_error {
        text.push_str(" ±: half of the 95 % interval, of samples, chance and what probe hits may have cost.");
    }
    if partly {
        text.push_str(
            " ≥: at least this many calls, since the function had its probes for a part of the time.",
        );
    }
    if with_error || partly {
        text.push_str(" Numbers without a mark are right within half a point.");
    }
    text
}

const LABEL: usize = 26;
const NARROW_CELL: usize = 9;
const WIDE_CELL: usize = 18;

fn more_rows(count: usize, by: By) -> String {
    match by {
        By::Module if count != 1 => format!("{} more binaries", grouped(count as u64)),
        by => counted(count, &format!("more {}", by.noun())),
    }
}

pub(in crate::present) fn predicted(
    out: &mut impl Write,
    layout: &Layout,
    style: &Style,
    results: &[&CpuResult],
) -> io::Result<()> {
    let cells = |cell: &dyn Fn(&CpuResult) -> String| -> Vec<String> {
        results.iter().map(|result| cell(result)).collect()
    };
    let times = if style.unicode { "×" } else { "x" };
    let titles = cells(&|result| cpu_title(result.cpus, style));
    table::line(out, layout, style, "", Paint::Plain, &titles)?;
    let time = cells(&|result| style.text(&duration(result.time_ns)));
    table::line(out, layout, style, "predicted time", Paint::Bold, &time)?;
    let speedup = cells(&|result| format!("{:.2}{times}", result.speedup));
    table::line(out, layout, style, "predicted speed-up", Paint::Bold, &speedup)
}

fn function(
    out: &mut impl Write,
    layout: &Layout,
    style: &Style,
    line: &Line<'_>,
    block: &[usize],
    results: &[&CpuResult],
    wide: bool,
) -> io::Result<()> {
    let columns: Vec<_> =
        block.iter().zip(results).map(|(&column, result)| (line.rows[column], *result)).collect();
    let cells = |cell: &dyn Fn(&FunctionRow, &CpuResult) -> String| -> Vec<String> {
        columns.iter().map(|(row, result)| row.map_or("-".into(), |row| cell(row, result))).collect()
    };
    let time = |ns: f64, result: &CpuResult| {
        let percent = percent(result.share(ns));
        if wide { format!("{:>9} {percent:>7}", style.text(&duration(ns))) } else { percent }
    };
    let marks = line.marks.text();
    let location =
        line.location.map(|location| format!("  {}", style.text(file_name(location)))).unwrap_or_default();
    let beside = format!("{location}{marks}");
    let room = style.width.saturating_sub(width(&beside)).max(24);
    let name = style.fit(line.name, room);
    writeln!(out, "{}{}", style.paint(Paint::Bold, &name), style.paint(Paint::Dim, &beside))?;
    let indented = |label: &str| format!("  {label}");
    table::line(
        out,
        layout,
        style,
        &indented("self"),
        Paint::Plain,
        &cells(&|row, result| time(row.tet_ns, result)),
    )?;
    let width = |error: Option<f64>, result: &CpuResult| error.map_or(String::new(), |ns| time(ns, result));
    let errors = |out: &mut _, of: &dyn Fn(&FunctionRow) -> Option<f64>| {
        if columns.iter().any(|(row, _)| row.is_some_and(|row| of(row).is_some())) {
            let cells: Vec<String> = columns
                .iter()
                .map(|(row, result)| row.map_or(String::new(), |row| width(of(row), result)))
                .collect();
            table::line(out, layout, style, &indented(&style.text("  \u{b1}")), Paint::Dim, &cells)?;
        }
        io::Result::Ok(())
    };
    errors(out, &|row| row.tet_error_ns)?;
    table::line(
        out,
        layout,
        style,
        &indented("total"),
        Paint::Plain,
        &cells(&|row, result| time(row.tetid_ns, result)),
    )?;
    errors(out, &|row| row.tetid_error_ns)?;
    if line.marks.counted {
        table::line(
            out,
            layout,
            style,
            &indented("calls"),
            Paint::Plain,
            &cells(&|row, _| calls(row, style)),
        )?;
    }
    Ok(())
}

/// Calls, never wider than a narrow cell: `1,023`, `1.23 M`; `≥ 1,023` if the function had its probes only a part of the time.
fn calls(row: &FunctionRow, style: &Style) -> String {
    let count = match row.calls {
        count @ ..100_000 => grouped(count),
        count @ ..1_000_000 if !row.calls_partial => grouped(count),
        count @ ..1_000_000_000 => format!("{:.2} M", count as f64 / 1e6),
        count => format!("{:.2} G", count as f64 / 1e9),
    };
    if row.calls_partial { style.text(&format!("≥ {count}")) } else { count }
}

pub(in crate::present) fn trust(out: &mut impl Write, trust: &Trust, style: &Style) -> io::Result<()> {
    let count = |count: u64, one: &str, many: &str| {
        format!("{} {}", grouped(count), if count == 1 { one } else { many })
    };
    let edges = match trust.truncated_waits {
        0 => String::new(),
        1 => "; 1 wait began before or ended after the recording".to_owned(),
        waits => format!("; {} waits began before or ended after the recording", grouped(waits)),
    };
    let text = format!(
        "Trust: {}, {}; lost {}, {} without a known waker, {} of unknown time{edges}.",
        count(trust.events, "event", "events"),
        count(trust.wakes, "wake-up", "wake-ups"),
        trust.lost.map_or("not known".to_owned(), grouped),
        count(trust.unmatched, "wait", "waits"),
        style.text(&duration(trust.unknown_ns as f64)),
    );
    table::wrap(out, style, Paint::Plain, "", &text, "       ")
}

/// Writes the number of samples, and which time they divide.
fn samples(out: &mut impl Write, facts: &SampleFacts, style: &Style) -> io::Result<()> {
    let rate = if facts.rate_hz > 0 {
        format!(" at up to {} Hz", grouped(facts.rate_hz.into()))
    } else {
        String::new()
    };
    let all_ns = facts.divided_ns + facts.undivided_ns;
    let text = format!(
        "Samples: {} of computing threads{rate}, which divide {} of compute time; {} of waiting threads, {} with a truncated stack.",
        grouped(facts.count),
        percent(if all_ns > 0.0 { facts.divided_ns / all_ns } else { 0.0 }),
        grouped(facts.elsewhere),
        grouped(facts.truncated),
    );
    table::wrap(out, style, Paint::Plain, "", &style.text(&text), "         ")
}

pub(in crate::present) fn findings(
    out: &mut impl Write,
    findings: &[Finding],
    style: &Style,
) -> io::Result<()> {
    for finding in findings.iter().take(FINDINGS) {
        let text = format!("! {}", sentence(finding));
        table::wrap(out, style, Paint::Warning, "", &style.text(&text), "  ")?;
    }
    match findings.len().saturating_sub(FINDINGS) {
        0 => Ok(()),
        more => writeln!(out, "! {}: --json lists them all.", counted(more, "more finding")),
    }
}

#[cfg(test)]
#[path = "report_tests.rs"]
mod tests;
