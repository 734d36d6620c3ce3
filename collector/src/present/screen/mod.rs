//! The report on one screen: facts, LIMIT, FIX, the curve, locks, functions, threads, and how sure the answer is.

mod constraint;
mod fix;
mod functions;
pub(crate) mod limit;
mod rows;
#[cfg(test)]
mod tests;
mod unrecorded;

pub(crate) use super::frame::clip;
pub(crate) use functions::rows as functions;
pub(crate) use rows::{Row, Table, locks, threads, wait_name, waits};

use super::frame;
use super::style::{Paint, Style};
use super::table;
use super::text::cpu_costs;
use super::words::counts;
use super::words::excerpt;
use super::words::finding::sentence;
use super::words::others;
use super::words::overhead;
use super::words::short::short;
use super::words::traffic;
use crate::cell::{duration, grouped, width};
use engine::limit::{LimitKind, Limits};
use engine::program::is_java_wait;
use engine::report::{CpuResult, Cpus, Finding, Report};
use std::io::{self, Write};

/// Facts about the program that are not in the report.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct About {
    /// The program's name.
    pub name: String,
    /// The file of the recording, as the user gave it.
    pub file: String,
    /// Number of threads.
    pub threads: usize,
    /// Whether some code that the program made at run time has names.
    pub names_made_code: bool,
    /// Set for a live program, which has no recording.
    pub live: Option<Live>,
}

/// A live program's stretch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Live {
    /// Which part of the run the report is about, and how old it is.
    pub stretch: String,
    /// What the user does to see all notes.
    pub notes: &'static str,
}

/// Rows of FUNCTIONS.
const FUNCTIONS: usize = 8;
/// Rows of the other tables.
const ROWS: usize = 4;

/// Writes the screen. `all`: with small rows, standard functions by themselves, and unchanged names.
pub fn write(
    report: &Report,
    limits: &Limits,
    about: &About,
    all: bool,
    style: &Style,
    mut out: impl Write,
) -> io::Result<()> {
    let out = &mut out;
    facts(out, report, about, style)?;
    for (label, text) in traffic::lines(&limits.traffic) {
        table::wrap(out, style, Paint::Bold, &format!("{label:<7}"), &style.text(&text), "       ")?;
    }
    if let Some(text) = others::sentence(&limits.others, machine(report).map_or(1, |cpus| cpus.or(1))) {
        table::wrap(out, style, Paint::Bold, "OTHERS ", &style.text(&text), "       ")?;
    }
    writeln!(out)?;
    limit::write(out, machine(report), limits, limits.fixes.len(), style)?;
    trust(out, report, limits, about, style)?;
    if computes(report) && !is_beside(report, limits) {
        writeln!(out)?;
        curve(out, report, None, style)?;
        if let Some(costs) = &limits.costs {
            cpu_costs::write(costs, style, out)?;
        }
        if limits.at.first().is_some_and(|limit| matches!(limit.kind, LimitKind::LocksNotRecorded { .. })) {
            let text = "(lock waits are as recorded: on other numbers of CPUs they may be longer)";
            table::wrap(out, style, Paint::Dim, "", text, " ")?;
        }
        if report.findings.iter().any(|finding| matches!(finding, Finding::OwnClock { .. })) {
            let text = "(the run ends by its own clock: times are for the same work; a faster program does more work)";
            table::wrap(out, style, Paint::Dim, "", text, " ")?;
        }
        let shown = |usual: usize| if all { usize::MAX } else { usual };
        locks(limits, style).write(out, shown(ROWS), "lock", style)?;
        if let Some(result) = main_result(report, limits) {
            let functions = functions(report, limits, result, all, style);
            functions.write(out, shown(FUNCTIONS), "function", style)?;
            // Under other commands the same name may stand for less.
            if !all && is_folded(report, result) {
                let text = "(standard functions count for their callers; --all: for themselves)";
                table::wrap(out, style, Paint::Dim, "", text, " ")?;
            }
            if let Some(text) = rows::missing_names(limits, about) {
                table::wrap(out, style, Paint::Dim, "", &text, " ")?;
            }
        }
        threads(limits, all, shown(ROWS), style).write(out, usize::MAX, "kind of thread", style)?;
        shares_of_threads(out, limits, shown(ROWS), style)?;
    }
    // A deadlock that LIMIT reports is not repeated.
    let is_stuck = matches!(limits.at.first().map(|limit| &limit.kind), Some(LimitKind::Deadlock { .. }));
    let is_said = |finding: &Finding| is_stuck && finding.deadlock().is_some();
    let findings: Vec<Finding> =
        report.findings.iter().filter(|finding| !is_said(finding)).cloned().collect();
    if frame::weighty(&findings).next().is_some() {
        writeln!(out)?;
    }
    frame::doubts(&findings, style, out)
}

/// Largest number of names that are listed for a row of THREADS.
const NAMES: usize = 4;

/// Writes the first `most` rows of THREADS alone, and lists the names of rows that stand for several threads.
pub(crate) fn by_thread(out: &mut dyn Write, limits: &Limits, most: usize, style: &Style) -> io::Result<()> {
    let mut out = out;
    if limits.threads.is_empty() {
        return writeln!(out, "What the threads do is not known.");
    }
    let table = threads(limits, true, most, style);
    writeln!(out, "{}", style.paint(Paint::Bold, &table.title))?;
    for row in &table.rows {
        writeln!(out, "{}", row.line)?;
    }
    shares_of_threads(&mut out, limits, most, style)?;
    let is_all = most == usize::MAX;
    let (rows, names) = if is_all { (most, most) } else { (most.min(ROWS), NAMES) };
    for used in limits.threads.iter().take(rows).filter(|used| used.names.len() > 1) {
        let mut spelled: Vec<String> = used.names.iter().take(names).cloned().collect();
        match used.names.len() - spelled.len() {
            0 => {}
            rest => spelled.push(format!("and {rest} more")),
        }
        let all = format!("{}: ", rows::together(&used.names));
        table::wrap(&mut out, style, Paint::Dim, &all, &style.text(&spelled.join(" ")), "  ")?;
    }
    let is_cut = !is_all && limits.threads.iter().any(|used| used.names.len() > NAMES);
    if is_cut || limits.threads.len() > most {
        table::wrap(&mut out, style, Paint::Dim, "", "(--all: all rows and names)", " ")?;
    }
    Ok(())
}

/// Writes why shares in THREADS do not add up to 100 %.
fn shares_of_threads(out: &mut impl Write, limits: &Limits, most: usize, style: &Style) -> io::Result<()> {
    if !rows::is_short_lived(limits, most) {
        return Ok(());
    }
    let text = "(percent of the run; the rest to 100 %: not started, ended, or never woken)";
    table::wrap(out, style, Paint::Dim, "", text, " ")
}

/// Whether a function whose time counts for its callers has a large self time.
fn is_folded(report: &Report, result: &CpuResult) -> bool {
    let least = functions::LEAST * result.time_ns;
    let mut large = result.functions.iter().filter(|row| row.tet_ns >= least);
    large.any(|row| {
        let found = report.used_by.binary_search_by(|used| used.function.as_str().cmp(&row.function));
        found.ok().and_then(|at| report.used_by.get(at)).is_some_and(|used| !used.by.is_empty())
    })
}

/// The recorded machine's CPU count.
pub(crate) fn machine(report: &Report) -> Option<Cpus> {
    report.recorded_cpus.and_then(Cpus::count)
}

/// Whether any thread computed anything.
pub(crate) fn computes(report: &Report) -> bool {
    report.results.iter().any(|result| result.time_ns > 0.0)
}

/// Whether the predicted run is only a small part of the recording: an idle program, or one in a deadlock early on.
pub(crate) fn is_beside(report: &Report, limits: &Limits) -> bool {
    let wall_ns = report.overhead.map_or(0.0, |cost| cost.wall_ns as f64);
    let first = limits.at.first();
    first.is_some_and(|limit| {
        matches!(limit.kind, LimitKind::Idle { .. } | LimitKind::Deadlock { .. })
            && limit.time_ns < wall_ns / 2.0
    })
}

/// The screen's result: on the recorded machine, else on the largest finite CPU count.
pub(super) fn main_result<'r>(report: &'r Report, limits: &Limits) -> Option<&'r CpuResult> {
    let cpus = limits.at.first().map(|limit| limit.cpus);
    let found = report.results.iter().find(|result| Some(result.cpus) == cpus);
    let finite = report.results.iter().filter(|result| result.cpus != Cpus::Infinite);
    found.or_else(|| finite.max_by_key(|result| result.cpus)).or_else(|| report.results.first())
}

/// Writes name, threads, length, machine and cost of the recording.
pub(crate) fn facts(out: &mut impl Write, report: &Report, about: &About, style: &Style) -> io::Result<()> {
    let threads = match about.threads {
        1 => "1 thread".to_owned(),
        threads => format!("{} threads", grouped(threads as u64)),
    };
    let machine = report.recorded_cpus.and_then(Cpus::count).map(crate::cpu_words::cpus);
    let wall = report.overhead.filter(|cost| cost.wall_ns > 0).map(|cost| duration(cost.wall_ns as f64));
    let stretch = about
        .live
        .as_ref()
        .map(|live| live.stretch.clone())
        .or_else(|| report.findings.iter().find_map(excerpt::lengths));
    let left = match (stretch.or(wall), machine) {
        (Some(wall), Some(machine)) => format!("{wall} on {machine}, {threads}"),
        (None, Some(machine)) => format!("{machine}, {threads}"),
        _ => threads,
    };
    let name = style.fit(&about.name, 24);
    let samples = report.samples.as_ref().filter(|_| about.live.is_none()).map(|facts| match facts.count {
        1 => "1 sample".to_owned(),
        count => format!("{} samples", grouped(count)),
    });
    let cost = report.overhead.and_then(|cost| cost.share());
    let goal = report.overhead.and_then(|cost| cost.budget());
    let goal = goal.filter(|goal| cost.is_some_and(|share| share > 1.25 * goal));
    // Only the part of the cost inside the program slows the program down.
    let inside = report.overhead.and_then(|cost| cost.share_in_threads()).filter(|_| goal.is_some());
    let inside = inside.map_or(String::new(), |inside| format!(" ({:.1} % in the program)", inside * 100.0));
    let goal = goal.map_or(String::new(), |goal| format!(", goal {:.0} %", goal * 100.0));
    let once = report.overhead.as_ref().and_then(overhead::once);
    let once = once.map_or(String::new(), |once| format!(" + {once}"));
    let cost = cost.map(|share| format!("cost {:.1} %{once}", share * 100.0));
    let cost_alone = cost.as_ref().filter(|_| !inside.is_empty()).map(|cost| format!("{cost}{inside}"));
    let right: Vec<String> = samples.into_iter().chain(cost).collect();
    let right = right.join(", ");
    let left = style.text(&left);
    let used = width(&name) + 3 + width(&left);
    // The longest text that fits.
    let mut fuller =
        [format!("{right}{inside}{goal}"), format!("{right}{inside}")].into_iter().chain(cost_alone);
    let right = fuller.find(|text| used + width(text) + 2 <= style.width).unwrap_or(right);
    let right = style.text(&right);
    if used > style.width {
        writeln!(out, "{}", style.paint(Paint::Bold, &name))?;
        table::wrap(out, style, Paint::Plain, "", &left, "")?;
        return table::wrap(out, style, Paint::Dim, "", &right, "");
    }
    let gap = style.width.saturating_sub(used + width(&right));
    write!(out, "{}   {left}", style.paint(Paint::Bold, &name))?;
    if right.is_empty() {
        return writeln!(out);
    }
    match gap {
        0 | 1 => writeln!(out, "\n{right}"),
        gap => writeln!(out, "{}{}", " ".repeat(gap), style.paint(Paint::Dim, &right)),
    }
}

/// The predicted time by CPU count. Neighbours with equal times share a column, except the chosen count.
pub(crate) fn curve(
    out: &mut impl Write,
    report: &Report,
    chosen: Option<Cpus>,
    style: &Style,
) -> io::Result<()> {
    if report.results.is_empty() {
        return Ok(());
    }
    // The chosen CPU count has a column of its own.
    let is_chosen = |result: &CpuResult| Some(result.cpus) == chosen;
    let times = |result: &&CpuResult| vec![result.time_ns; if is_chosen(result) { 2 } else { 1 }];
    let cells = counts::alike(&report.results, times).into_iter().map(|same| {
        let cpus: Vec<Cpus> = same.iter().map(|result| result.cpus).collect();
        let time = same.first().map_or(0.0, |result| result.time_ns);
        let name = counts::range(&cpus, style);
        let name =
            if same.first().is_some_and(|result| is_chosen(result)) { format!("[{name}]") } else { name };
        // The largest range of CPU counts in one column.
        let ranges = same.iter().filter_map(|result| result.may_be_ns);
        let range = ranges.reduce(|(low, high), other| (other.0.min(low), other.1.max(high)));
        let range = range.map(|(low, high)| match high.is_finite() {
            true => format!("{}-{}", duration(low), duration(high)),
            false => format!("{} or more", duration(low)),
        });
        [name, style.text(&duration(time)), style.text(&range.unwrap_or_default())]
    });
    let cells: Vec<[String; 3]> = cells.collect();
    let cell = cells.iter().flatten().map(|text| width(text)).max().unwrap_or(8) + 2;
    let per_line = (style.width.saturating_sub(11) / cell.max(1)).max(1);
    for block in cells.chunks(per_line) {
        let line = |row: usize| -> String {
            let texts = block.iter().filter_map(|texts| texts.get(row));
            texts.map(|text| format!("{}{text}", " ".repeat(cell - width(text)))).collect()
        };
        writeln!(out, "{}{}", style.paint(Paint::Bold, "CPUs       "), line(0))?;
        writeln!(out, "predicted  {}", line(1))?;
        if block.iter().any(|[.., range]| !range.is_empty()) {
            writeln!(out, "may be     {}", line(2))?;
        }
    }
    Ok(())
}

/// Writes how sure the answer is, and the next command.
fn trust(
    out: &mut impl Write,
    report: &Report,
    limits: &Limits,
    about: &About,
    style: &Style,
) -> io::Result<()> {
    let computes = is_answered(report, limits);
    let command = |words: &str| frame::command(words, &about.file, style);
    let shown_by = about.live.as_ref().map_or_else(|| command("notes"), |live| live.notes.to_owned());
    let sure = frame::trust(&report.findings, computes, &shown_by);
    table::wrap(out, style, Paint::Bold, "SURE   ", &sure, "       ")?;
    let kind = limits.at.first().map(|limit| &limit.kind);
    let next = match kind {
        _ if about.live.is_some() => return Ok(()),
        // No recording can show which of Java's locks it is, but `report --by wait` names the waiting threads.
        Some(LimitKind::LocksNotRecorded { word, .. }) if is_java_wait(word) => command("report --by wait"),
        Some(LimitKind::LocksNotRecorded { cost: Some(cost), .. }) => {
            let name = style.text(&about.name);
            match unrecorded::overhead_for(*cost) {
                Some(overhead) => format!("longpole record --overhead {overhead} -p {name}"),
                None => format!("longpole record {name} ARGUMENTS"),
            }
        }
        Some(kind) if kind.is_wait() && others::of_children(limits.children.as_ref()).is_some() => {
            format!("longpole record --children -p {}", style.text(&about.name))
        }
        _ if !computes => return Ok(()),
        // Only runs show how much longer lines take on more CPUs.
        Some(LimitKind::CacheLine { .. }) if limits.costs.is_none() => {
            let cpus = limits.at.first().map_or(2, |limit| limit.cpus.or(2).max(2));
            format!("longpole record --cpus 1,{cpus} -- {} ARGUMENTS", style.text(&about.name))
        }
        Some(LimitKind::OtherRequests { .. }) => command("report --per socket"),
        Some(LimitKind::Idle { .. }) if serves(limits) => command("report --per socket"),
        Some(LimitKind::Idle { .. }) => command("report --by wait"),
        Some(LimitKind::Deadlock { .. }) => command("notes"),
        _ => command("what-if --rank"),
    };
    table::wrap(out, style, Paint::Bold, "NEXT   ", &next, "       ")
}

/// Whether the program has answered enough requests that single ones tell something.
fn serves(limits: &Limits) -> bool {
    const ENOUGH: u64 = 100;
    limits.traffic.iter().any(|end| end.served && end.count >= ENOUGH)
}

/// What can change the answer, one line for each finding: a live screen has no room for more.
pub(crate) fn doubts(report: &Report, style: &Style) -> Vec<String> {
    let line = |finding| clip(&style.text(&format!("! {}", sentence(finding))), style.width, style);
    frame::weighty(&report.findings).map(|finding| style.paint(Paint::Warning, &line(finding))).collect()
}

/// How sure the answer is, for the last line of a live screen.
pub(crate) fn sure(report: &Report, limits: &Limits, shown_by: &str) -> String {
    format!("Sure: {}.", frame::trust(&report.findings, is_answered(report, limits), shown_by))
}

/// Whether the recording contains enough for an answer.
fn is_answered(report: &Report, limits: &Limits) -> bool {
    computes(report) && limits.at.first().is_none_or(|limit| limit.kind.is_known())
}

/// Width of the first column, which has names.
fn name_columns(usual: usize, style: &Style) -> usize {
    if is_narrow(style) { 14 } else { usual }
}

/// Whether there is room for the most important columns only.
fn is_narrow(style: &Style) -> bool {
    style.width < 60
}

/// A name, shortened unless `all` is set, and padded to the width of its column.
fn named(name: &str, all: bool, style: &Style, columns: usize) -> String {
    let name = if all { style.fit(name, columns) } else { style.fit(&short(name), columns) };
    format!("{name}{}", " ".repeat(columns.saturating_sub(width(&name))))
}
