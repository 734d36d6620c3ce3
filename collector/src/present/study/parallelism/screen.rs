//! The screen: the advice, the run by busy CPUs, and the first functions, objects and threads.

use super::words::{brief, name, sentence, share};
use crate::cell::{duration, grouped, width};
use crate::present::frame::Frame;
use crate::present::style::{Paint, Style};
use crate::present::table;
use engine::limit::LimitKind;
use engine::parallelism::{Parallelism, ParallelismRow, ParallelismRowKind};
use engine::report::{Cpus, Finding};
use std::io::{self, Write};

/// What the user wants to see.
#[derive(Clone, Debug)]
pub struct Asked<'a> {
    /// Only rows of this class are shown.
    pub only: Option<Class>,
    /// Rows of each class; `None`: the class's usual number.
    pub top: Option<usize>,
    /// The limit, how sure the answer is, and the file for the next command.
    pub frame: &'a Frame,
    /// Findings about the recording.
    pub findings: &'a [Finding],
    /// The prediction for the measured run's number of CPUs, shown next to the measured run.
    pub beside: Option<&'a Parallelism>,
}

/// A class of rows that share a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// Functions.
    Functions,
    /// Locks, barriers, conditions.
    Objects,
    /// Threads.
    Threads,
}

impl Class {
    fn of(kind: ParallelismRowKind) -> Class {
        match kind {
            ParallelismRowKind::Function => Class::Functions,
            ParallelismRowKind::Lock | ParallelismRowKind::Barrier | ParallelismRowKind::Condition => {
                Class::Objects
            }
            ParallelismRowKind::Thread => Class::Threads,
        }
    }

    fn rows(self) -> usize {
        match self {
            Class::Functions => 10,
            Class::Objects | Class::Threads => 4,
        }
    }
}

/// Largest number of rows of the histogram; with more numbers of busy CPUs, each row is a range.
const BARS: usize = 7;
/// Width of a name's column.
const NAME: usize = 22;
/// A row with a smaller share of the run is shown only with all rows.
const WORTH: f64 = 0.005;
/// A foreign function whose own share is smaller than this only connects other functions, and has no row.
const BETWEEN: f64 = 0.01;

/// Writes the screen, with a column for each run; text and rows are about the first run.
pub fn write(
    runs: &[Parallelism],
    asked: &Asked<'_>,
    style: &Style,
    mut out: &mut dyn Write,
) -> io::Result<()> {
    let Some(run) = runs.first() else { return Ok(()) };
    let out = &mut out;
    // If the limit is a wait, changing code that runs at that time gains nothing; where code shares a cache line, more threads
    // gain nothing.
    let limit = asked.frame.limits.at.iter().find(|limit| Some(limit.cpus) == run.cpus);
    let is_other = |kind: &LimitKind| kind.is_wait() || matches!(kind, LimitKind::CacheLine { .. });
    let is_told = limit.is_some_and(|limit| limit.kind.is_known() && is_other(&limit.kind));
    let is_wait = limit.is_some_and(|limit| is_other(&limit.kind));
    let first = || run.first().filter(|_| !is_wait).map(|(row, advice)| sentence(run, row, advice));
    let shape = || super::notice::shape(run).filter(|_| !is_told).or_else(first);
    let title = super::notice::problem(run).or_else(shape);
    match title {
        Some(title) => {
            table::wrap(out, style, Paint::Bold, "", &style.text(&title), "")?;
            // Without an empty line, the run's facts below would read like a part of the advice.
            writeln!(out)?;
        }
        // Without advice, the report's LIMIT stands here.
        None => asked.frame.head(style, out)?,
    }
    facts(run, style, out)?;
    if super::notice::is_empty(run) {
        return Ok(());
    }
    writeln!(out)?;
    histogram(runs, asked.beside, style, out)?;
    for class in [Class::Functions, Class::Objects, Class::Threads] {
        if asked.only.is_none_or(|only| only == class) {
            rows(runs, class, asked, style, out)?;
        }
    }
    writeln!(out)?;
    let what = "of run: the row's time and all done on its behalf, divided by the CPUs that are busy meanwhile: code that runs alone counts in full. itself: the row's own part; these parts add up to the run. CPUs: busy on average.";
    table::wrap(out, style, Paint::Dim, "", what, "")?;
    let next = run.first().map(|(row, _)| name(row)).unwrap_or_default();
    let next = if next.contains(' ') { format!("'{next}'") } else { next };
    let command = format!("longpole parallelism {} --of {next}", asked.frame.file);
    let next = if next.is_empty() { String::new() } else { style.text(&command) };
    writeln!(out)?;
    asked.frame.foot_with(asked.findings, &next, style, out)
}

fn facts(run: &Parallelism, style: &Style, out: &mut impl Write) -> io::Result<()> {
    let how = if run.measured { "measured" } else { "predicted" };
    let threads = if run.threads == 1 {
        "1 thread".to_owned()
    } else {
        format!("{} threads", grouped(run.threads.into()))
    };
    let mut facts = format!("{} {how}{}, {threads}", duration(run.elapsed_ns as f64), on(run.cpus));
    if run.orphans > 0 {
        let whom = if run.orphans == 1 {
            "one of them works".to_owned()
        } else {
            format!("{} of them work", grouped(run.orphans.into()))
        };
        facts.push_str(&format!(" (not known for whom {whom})"));
    }
    if run.samples > 0 {
        facts.push_str(&format!(", {} samples", grouped(run.samples)));
    }
    if run.recording_ns > 0 {
        facts.push_str(&format!(
            "; probes took {} of CPU time, which counts for no function",
            duration(run.recording_ns as f64)
        ));
    }
    table::wrap(out, style, Paint::Plain, "", &style.text(&format!("{facts}.")), "")
}

fn on(cpus: Option<Cpus>) -> String {
    match cpus {
        Some(Cpus::Count(count)) if count.get() == 1 => " on 1 CPU".to_owned(),
        Some(Cpus::Count(count)) => format!(" on {count} CPUs"),
        Some(Cpus::Infinite) => " on unlimited CPUs".to_owned(),
        None => String::new(),
    }
}

/// Title of a run's column.
pub(super) fn column(run: &Parallelism, style: &Style) -> String {
    match run.cpus {
        _ if run.measured => "measured".to_owned(),
        Some(Cpus::Count(count)) if count.get() == 1 => "1 CPU".to_owned(),
        Some(Cpus::Count(count)) => format!("{count} CPUs"),
        Some(Cpus::Infinite) => if style.unicode { "∞ CPUs" } else { "inf CPUs" }.to_owned(),
        None => "predicted".to_owned(),
    }
}

/// Writes the run's time by number of busy CPUs.
fn histogram(
    runs: &[Parallelism],
    beside: Option<&Parallelism>,
    style: &Style,
    out: &mut impl Write,
) -> io::Result<()> {
    let all: Vec<&Parallelism> = runs.iter().chain(beside).collect();
    let columns = all.len().min(5);
    let mut title = format!("{:<11}", "BUSY CPUs");
    for run in &all[..columns] {
        let text = if run.measured || beside.is_none() { column(run, style) } else { "predicted".to_owned() };
        title.push_str(&" ".repeat(11usize.saturating_sub(width(&text)).max(1)));
        title.push_str(&text);
    }
    writeln!(out, "{}", style.paint(Paint::Bold, &title))?;
    let most = all.iter().flat_map(|run| &run.levels).map(|(level, _)| *level).max().unwrap_or(0);
    for (from, to) in bars(most) {
        let label = if from == to { from.to_string() } else { format!("{from} to {to}") };
        let mut line = format!("{label:>9}  ");
        let part = |run: &Parallelism| -> f64 {
            let inside = run.levels.iter().filter(|(level, _)| (from..=to).contains(level));
            inside.map(|(_, ns)| *ns as f64).sum::<f64>() / (run.elapsed_ns as f64).max(1.0)
        };
        for run in &all[..columns] {
            line.push_str(&format!("{:>11}", super::words::percent(part(run))));
        }
        let room = style.width.saturating_sub(width(&line) + 2).min(40);
        if let Some(run) = all.first() {
            line.push_str("  ");
            line.push_str(&"#".repeat((part(run) * room as f64).round() as usize));
        }
        writeln!(out, "{}", line.trim_end())?;
    }
    Ok(())
}

/// The histogram's ranges of busy CPUs, from 0 on.
pub(super) fn bars(most: u32) -> Vec<(u32, u32)> {
    let most_bars = BARS as u32;
    if most < most_bars {
        return (0..=most).map(|level| (level, level)).collect();
    }
    // 0 and 1 have rows of their own; all other numbers are divided evenly.
    let parts = most_bars - 2;
    let mut bars = vec![(0, 0), (1, 1)];
    let mut from = 2;
    for part in 1..=parts {
        let to = 1 + (u64::from(most - 1) * u64::from(part) / u64::from(parts)) as u32;
        if to >= from {
            bars.push((from, to));
            from = to + 1;
        }
    }
    bars
}

fn rows(
    runs: &[Parallelism],
    class: Class,
    asked: &Asked<'_>,
    style: &Style,
    out: &mut impl Write,
) -> io::Result<()> {
    let Some(run) = runs.first() else { return Ok(()) };
    let shows_all = asked.top.is_some();
    let all = run.rows.iter().filter(|row| Class::of(row.kind) == class);
    let worth: Vec<&ParallelismRow> = all.filter(|row| shows_all || is_worth(run, row)).collect();
    if worth.is_empty() {
        return Ok(());
    }
    let most = asked.top.unwrap_or(if asked.only.is_some() { 25 } else { class.rows() });
    let shown = worth.len().min(most);
    writeln!(out)?;
    if runs.len() > 1 {
        by_run(runs, class, &worth[..shown], style, out)?;
    } else {
        match class {
            Class::Objects => objects(run, &worth[..shown], style, out)?,
            _ => code(run, class, &worth[..shown], style, out)?,
        }
    }
    match worth.len() - shown {
        0 => Ok(()),
        rest => {
            let by = match class {
                Class::Functions => "function",
                Class::Objects => "lock",
                Class::Threads => "thread",
            };
            let text = format!("({rest} more: --by {by} --top {})", worth.len());
            table::wrap(out, style, Paint::Dim, "", &text, " ")
        }
    }
}

/// Whether a row is shown unless all are asked for.
pub(super) fn is_worth(run: &Parallelism, row: &ParallelismRow) -> bool {
    let elapsed = run.elapsed_ns as f64;
    let waited = (row.own.blocked.ns + row.own.spinning.ns) as f64;
    match Class::of(row.kind) {
        Class::Objects => (row.normalized_total_ns as f64).max(waited) >= WORTH * elapsed,
        Class::Threads => row.normalized_total_ns as f64 >= WORTH * elapsed,
        Class::Functions => {
            let counts = if row.is_foreign { BETWEEN } else { 0.0 };
            row.normalized_total_ns as f64 >= WORTH * elapsed
                && row.normalized_self_ns as f64 >= counts * elapsed
        }
    }
}

fn padded(text: &str, columns: usize, style: &Style) -> String {
    let text = style.fit(text, columns);
    format!("{text}{}", " ".repeat(columns.saturating_sub(width(&text))))
}

fn title(class: Class) -> &'static str {
    match class {
        Class::Functions => "FUNCTIONS",
        Class::Objects => "LOCKS AND WAITS",
        Class::Threads => "THREADS",
    }
}

/// A share of the time, with its error if it has one: `25 %`, `25 ±1 %`.
fn sure_share(ns: u64, error: Option<f64>, run: &Parallelism) -> String {
    let text = share(ns, run);
    let error = error.map(|error| error / (run.elapsed_ns as f64).max(1.0) * 100.0);
    match (text.strip_suffix(" %"), error) {
        (Some(number), Some(error)) if error >= 0.05 => {
            let digits = usize::from(error < 0.95);
            format!("{number} ±{error:.digits$} %")
        }
        _ => text,
    }
}

fn cell(text: &str, columns: usize, style: &Style) -> String {
    let text = style.text(text);
    format!("{}{text}", " ".repeat(columns.saturating_sub(width(&text))))
}

/// Width of a name's column if `numbers` columns are for numbers.
fn name_columns(numbers: usize, style: &Style) -> usize {
    style.width.saturating_sub(numbers).clamp(12, NAME)
}

/// Writes a row with its advice to the right, or below if there is no room.
fn advised(
    run: &Parallelism,
    row: &ParallelismRow,
    line: &str,
    style: &Style,
    out: &mut impl Write,
) -> io::Result<()> {
    let advice = run.advice(row).map(brief).unwrap_or_default();
    if advice.is_empty() || width(line) + 2 + width(&advice) <= style.width {
        return writeln!(out, "{}", format!("{line}  {advice}").trim_end());
    }
    writeln!(out, "{}\n  {advice}", line.trim_end())
}

/// Writes the titles, that of the advice only if there is room.
fn head(text: &str, style: &Style, out: &mut impl Write) -> io::Result<()> {
    let with = format!("{text}  what to do");
    let text = if width(&with) <= style.width { with.as_str() } else { text };
    writeln!(out, "{}", style.paint(Paint::Bold, text))
}

fn code(
    run: &Parallelism,
    class: Class,
    rows: &[&ParallelismRow],
    style: &Style,
    out: &mut impl Write,
) -> io::Result<()> {
    // Just enough for `84 ±0.7 %` on a narrow screen.
    let number = if style.width < 60 { 11 } else { 12 };
    let columns = name_columns(2 * number + 6, style);
    head(
        &format!("{:columns$}{:>number$}{:>number$}{:>6}", title(class), "of run", "itself", "CPUs"),
        style,
        out,
    )?;
    for row in rows {
        let cpus = if row.normalized_total_ns == 0 {
            "-".to_owned()
        } else {
            format!("{:.1}", row.busy_processors())
        };
        let line = format!(
            "{}{}{}{cpus:>6}",
            padded(&name(row), columns - 1, style) + " ",
            cell(&sure_share(row.normalized_total_ns, row.error_total_ns, run), number, style),
            cell(&sure_share(row.normalized_self_ns, row.error_self_ns, run), number, style),
        );
        advised(run, row, &line, style, out)?;
    }
    Ok(())
}

fn objects(
    run: &Parallelism,
    rows: &[&ParallelismRow],
    style: &Style,
    out: &mut impl Write,
) -> io::Result<()> {
    // On a narrow screen the number of acquisitions is omitted.
    let is_narrow = style.width < 60;
    let columns = name_columns(if is_narrow { 26 } else { 36 }, style);
    let word = if is_narrow { "LOCKS, WAITS" } else { title(Class::Objects) };
    let calls = |text: String| if is_narrow { String::new() } else { format!("{text:>10}") };
    let titles = format!(
        "{word:columns$}{:>8}{}{:>11}{:>7}",
        "of run",
        calls("accesses".to_owned()),
        "wait each",
        "queue"
    );
    head(&titles, style, out)?;
    for row in rows {
        let wait = row.average_wait_ns().map_or("-".to_owned(), duration);
        let queue = match row.queue_length() {
            length if length > 0.0 => format!("{length:.1}"),
            _ => "-".to_owned(),
        };
        let line = format!(
            "{}{}{}{}{queue:>7}",
            padded(&name(row), columns - 1, style) + " ",
            cell(&share(row.normalized_total_ns, run), 8, style),
            calls(row.calls.map_or("-".to_owned(), grouped)),
            cell(&wait, 11, style),
        );
        advised(run, row, &line, style, out)?;
    }
    Ok(())
}

/// Writes the rows' shares with a column for each run.
fn by_run(
    runs: &[Parallelism],
    class: Class,
    rows: &[&ParallelismRow],
    style: &Style,
    out: &mut impl Write,
) -> io::Result<()> {
    const CELL: usize = 10;
    let columns = (style.width.saturating_sub(NAME) / CELL).clamp(1, runs.len());
    let mut head = format!("{:NAME$}", title(class));
    for run in &runs[..columns] {
        head.push_str(&cell(&column(run, style), CELL, style));
    }
    writeln!(out, "{}", style.paint(Paint::Bold, &head))?;
    for row in rows {
        let mut line = padded(&name(row), NAME - 1, style) + " ";
        for run in &runs[..columns] {
            let same = run.rows.iter().find(|other| other.kind == row.kind && other.name == row.name);
            let text = same.map_or("-".to_owned(), |same| share(same.normalized_total_ns, run));
            line.push_str(&cell(&text, CELL, style));
        }
        writeln!(out, "{}", line.trim_end())?;
    }
    Ok(())
}
