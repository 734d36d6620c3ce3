//! The report by wait: what threads slept for, as recorded.

use crate::cell::{duration, grouped, whole_percent, width};
use crate::present::frame::{clip, more};
use crate::present::style::{Paint, Style};
use crate::present::table;
use crate::present::words::short::short;
use engine::program::{RecordedWait, Share, WaitStack};
use engine::report::Report;
use std::io::{self, Write};

/// Width of a name's column.
const NAME: usize = 18;
/// Number of stacks below a row.
const STACKS: usize = 4;
/// Width of the name of a file, or of a socket's other end.
const OF: usize = 40;

/// Writes the `shown` longest kinds of waits, followed by idle waits.
pub(in crate::present) fn write(
    out: &mut dyn Write,
    report: &Report,
    shown: Shown,
    style: &Style,
) -> io::Result<()> {
    let waits = &report.recorded.waits;
    if waits.is_empty() {
        let none = "No waits were recorded: a program written by hand has none.";
        let mut out = out;
        return table::wrap(&mut out, style, Paint::Plain, "", none, "");
    }
    let (idle, busy): (Vec<&RecordedWait>, Vec<&RecordedWait>) = waits.iter().partition(|wait| wait.idle);
    if busy.is_empty() {
        writeln!(out, "Threads waited only for something to do.")?;
    }
    part(out, "WAITS", &busy, shown, style)?;
    if !idle.is_empty() {
        if !busy.is_empty() {
            writeln!(out)?;
        }
        part(out, "IDLE", &idle, shown, style)?;
    }
    writeln!(
        out,
        "{}",
        style.paint(
            Paint::Dim,
            "Times are summed over threads, as recorded. Idle: nothing to do, or never woken."
        )
    )?;
    super::goroutines::write(out, &report.recorded.goroutine_work, shown.rows, style)
}

/// What is shown of the waits.
#[derive(Clone, Copy)]
pub(in crate::present) struct Shown {
    /// Number of rows.
    pub(in crate::present) rows: usize,
    /// Whether the stacks of each row are shown, too.
    pub(in crate::present) with_stacks: bool,
}

/// The most frequent stacks with their shares of the sampled waits, each as `82 % fdatasync < flush < commit`.
pub(crate) fn stacks(wait: &RecordedWait) -> Vec<String> {
    let all: u64 = wait.stacks.iter().map(|stack| stack.waits).sum();
    let line = |stack: &WaitStack| {
        let functions: Vec<String> = stack.functions.iter().map(|function| short(function)).collect();
        let share = whole_percent(stack.waits as f64 / all.max(1) as f64);
        format!("{share:>5} {}", functions.join(" < "))
    };
    wait.stacks.iter().take(STACKS).map(line).collect()
}

fn part(
    out: &mut dyn Write,
    title: &str,
    waits: &[&RecordedWait],
    shown: Shown,
    style: &Style,
) -> io::Result<()> {
    if waits.is_empty() {
        return Ok(());
    }
    let columns = if style.width < 60 { 14 } else { NAME };
    let title = format!(
        "{title:columns$} {:>9} {:>8} {:>7} {:>9}  {:<12}  asleep in",
        "waited", "times", "threads", "longest", "ended by"
    );
    writeln!(out, "{}", style.paint(Paint::Bold, &clip(&title, style.width, style)))?;
    for wait in waits.iter().take(shown.rows) {
        let name = style.fit(wait.name.as_str(), columns);
        let time = |ns: u64| {
            let text = style.text(&duration(ns as f64));
            format!("{}{text}", " ".repeat(9usize.saturating_sub(width(&text))))
        };
        let first = |shares: &[Share], columns: usize, short: fn(&str) -> String| {
            let text = shares.first().map_or(String::new(), |share| short(&share.name));
            let more = if shares.len() > 1 { "+" } else { "" };
            let text = style.fit(&format!("{text}{more}"), columns);
            format!("{text}{}", " ".repeat(columns.saturating_sub(width(&text))))
        };
        let line = format!(
            "{name}{} {} {:>8} {:>7} {}  {}  {}",
            " ".repeat(columns.saturating_sub(width(&name))),
            time(wait.wait_ns),
            grouped(wait.waits),
            grouped(wait.threads),
            time(wait.longest_ns),
            first(&wait.ended_by, 12, cause),
            first(&wait.sleepers, 24, short)
        );
        writeln!(out, "{}", clip(&line, style.width, style))?;
        if !wait.of.is_empty() {
            let line = format!("  {}", of(wait, style));
            writeln!(out, "{}", style.paint(Paint::Dim, &clip(&line, style.width, style)))?;
        }
        if shown.with_stacks {
            for line in stacks(wait) {
                table::wrap(&mut &mut *out, style, Paint::Dim, "  ", &style.text(&line), "         ")?;
            }
        }
    }
    more(out, waits.len().saturating_sub(shown.rows), "kind of wait", "--json has all", style)
}

/// The files, or other ends of sockets, with their shares of the time that is waited.
fn of(wait: &RecordedWait, style: &Style) -> String {
    let share = |ns: u64| whole_percent(ns as f64 / wait.wait_ns.max(1) as f64);
    let each: Vec<String> =
        wait.of.iter().map(|part| format!("{} {}", style.fit(&part.name, OF), share(part.wait_ns))).collect();
    each.join(", ")
}

/// What ended a wait, in short: the column has no room for `another process`.
fn cause(name: &str) -> String {
    name.strip_prefix("another ").unwrap_or(name).to_owned()
}

/// The most frequent names with their counts: `thread 7, timer 2`.
pub(in crate::present) fn shares(shares: &[Share]) -> String {
    let each: Vec<String> =
        shares.iter().map(|share| format!("{} {}", share.name, grouped(share.count))).collect();
    each.join(", ")
}
