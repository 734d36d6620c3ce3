//! `longpole paths` as text: what can be gained at most, and the longest paths as ways through the threads.

use super::listing::{gained, headline, line, note, placed, share, unlike_predicted};
use super::slack::{doing, operation};
use crate::cell::{counted, duration, grouped};
use crate::present::frame::{Frame, clip, more};
use crate::present::style::{Paint, Style};
use crate::present::table;
use crate::present::words::short::short;
use engine::graph::{BenefitRow, PathRow, PathsReport, ShownPath, Stay};
use engine::program::bare_name;
use std::io::{self, Write};

/// Largest number of paths whose route is computed.
pub const ROUTES: usize = 3;
/// Largest number of routes that are shown: further ones differ little.
const WAYS: usize = 1;
/// Rows of a kind without an option; kinds then have numbers of their own.
pub const TOP: usize = 10;
/// Smaller shares of the run have no row.
const LEAST: f64 = 0.005;
/// Paths whose lengths differ by less than this share count as equally long.
const ALIKE: f64 = 0.0005;
/// Largest number of stays that are shown at the beginning of a route, and at its end.
const STAYS: [usize; 2] = [3, 2];
/// A screen with fewer columns is narrow.
const NARROW: usize = 60;
/// Largest number of parts of a stay that are named.
const PARTS: usize = 3;

/// Writes the first `top` rows of each kind.
pub fn text(
    report: &PathsReport,
    frame: &Frame,
    top: usize,
    style: &Style,
    out: &mut dyn Write,
) -> io::Result<()> {
    if report.shown.is_none() {
        frame.head(style, out)?;
    }
    headline(out, style, &sentence(report))?;
    unlike_predicted(report.length_ns, report.predicted_ns, style, out)?;
    match &report.shown {
        Some(shown) => shown_path(shown, style, out)?,
        _ => {
            benefits(report, top, style, out)?;
            routes(report, style, out)?;
        }
    }
    if !report.segments.is_empty() {
        segments(report, style, out)?;
    }
    frame.foot(&report.findings, Some("what-if --rank"), style, out)
}

fn sentence(report: &PathsReport) -> String {
    if let Some(deadlock) = super::listing::deadlock(&report.findings) {
        return deadlock;
    }
    let length = duration(report.length_ns);
    let Some(last) = report.paths.last().filter(|_| report.length_ns > 0.0) else {
        return "Nothing to make faster: no thread took any time here.".to_owned();
    };
    let lacks = report.length_ns - last.length_ns;
    let listed = match report.paths.len() {
        1 if report.counts.all == 1 => format!("There is only one path, of {length}"),
        1 => format!("The critical path takes {length}"),
        count if count as u128 == report.counts.all && lacks > 0.0 => format!(
            "There are {}, the shortest {} shorter than the longest, which takes {length}",
            paths(report.counts.all),
            share(lacks, report.length_ns)
        ),
        count if lacks == 0.0 => {
            format!("{} paths are as long as the longest, {length}", grouped(count as u64))
        }
        count if lacks < ALIKE * report.length_ns => {
            format!("The {} longest ways through the run all take {length}", grouped(count as u64))
        }
        count => format!(
            "The {} longest ways through the run are all within {} of {length}",
            grouped(count as u64),
            share(lacks, report.length_ns)
        ),
    };
    let first = report.benefit.iter().find(|row| row.kind == "function" && row.maximum_benefit_ns > 0.0);
    let gain = match first {
        Some(row) => format!(
            "{} can gain the most, {} ({}) on unlimited CPUs while locks are taken in this order{}",
            short(&row.name),
            duration(row.maximum_benefit_ns),
            share(row.maximum_benefit_ns, report.length_ns),
            simulated_text(row.simulated_ns, report.length_ns)
        ),
        None => "no function alone can gain anything".to_owned(),
    };
    format!("{listed}: {gain}.")
}

/// The simulated length of paths: `; 3.0 s (78 %) if their order may change`; empty if it was not simulated.
pub(super) fn simulated_text(simulated_ns: Option<f64>, length_ns: f64) -> String {
    simulated_ns.map_or(String::new(), |ns| {
        format!("; {} ({}) if their order may change", duration(ns), share(ns, length_ns))
    })
}

/// A number of paths in words: `12 paths`, `about 3e40 paths`.
pub fn paths(count: u128) -> String {
    match u64::try_from(count) {
        Ok(count) if count < 1_000_000_000 => counted(usize::try_from(count).unwrap_or(usize::MAX), "path"),
        _ if count == u128::MAX => "more paths than can be counted".to_owned(),
        _ => format!("about {:.0e} paths", count as f64),
    }
}

fn benefits(report: &PathsReport, top: usize, style: &Style, out: &mut dyn Write) -> io::Result<()> {
    let (mut is_open, mut rest) = (false, 0);
    for (kind, title, usual) in [
        ("function", "FUNCTIONS", 4),
        ("lock", "WHILE A LOCK IS HELD", 2),
        ("thread", "THREADS", 2),
        ("process", "PROCESSES", 2),
        ("class", "KINDS OF TIME", 3),
    ] {
        let rows: Vec<&BenefitRow> = report.benefit.iter().filter(|row| row.kind == kind).collect();
        // A single process has all of the run, which the sentence above says already.
        if rows.is_empty() || kind == "process" && rows.len() == 1 {
            continue;
        }
        let least = LEAST * report.length_ns;
        let shown = if top == TOP { usual } else { top };
        let worth = |row: &&&BenefitRow| top != TOP || row.critical_path_ns >= least;
        let shown: Vec<&&BenefitRow> = rows.iter().filter(worth).take(shown).collect();
        if shown.is_empty() && top == TOP {
            continue;
        }
        let is_simulated = rows.iter().any(|row| row.simulated_ns.is_some());
        let titles = ["on path", "order kept"].into_iter().chain(is_simulated.then_some("simulated"));
        let titles: Vec<String> = titles.map(str::to_owned).collect();
        line(out, style, Paint::Bold, title, &titles)?;
        for row in &shown {
            let mut cells = vec![duration(row.critical_path_ns), gained(row.maximum_benefit_ns)];
            if is_simulated {
                cells.push(row.simulated_ns.map_or("-".to_owned(), gained));
            }
            is_open |= !row.settled;
            let name = if kind == "lock" { bare_name(&row.name) } else { &row.name };
            line(out, style, Paint::Plain, &placed(name, row.location.as_deref()), &cells)?;
        }
        // Without an option, one line summarizes the rows that are not shown.
        rest += rows.len() - shown.len();
        if top != TOP {
            let how = format!("--top {} shows all", rows.len());
            more(out, rows.len() - shown.len(), kind, &how, style)?;
        }
    }
    if top == TOP {
        more(out, rest, "row", "--top 20 shows more", style)?;
    }
    if !report.benefit.is_empty() {
        let listed = counted(report.paths.len(), "path");
        let open = if is_open { " (with more paths it may be less)" } else { "" };
        let what = format!(
            "Order kept: gained before another of {listed} is the longest, with locks taken in this order{open}. Simulated: gained without it if locks may be taken in another order."
        );
        note(out, style, &what)?;
        writeln!(out)?;
    }
    Ok(())
}

fn routes(report: &PathsReport, style: &Style, out: &mut dyn Write) -> io::Result<()> {
    let with_route = report.paths.iter().filter_map(|path| Some((path, path.route.as_ref()?))).take(WAYS);
    let mut written = 0;
    for (path, route) in with_route {
        path_line(path, style, out)?;
        stays(route, style, out)?;
        written += 1;
    }
    if let (Some(first), Some(last)) = (report.paths.get(written), report.paths.last())
        && written > 0
    {
        let text = if first.rank == last.rank {
            format!("path {}: {}", last.rank, duration(last.length_ns))
        } else {
            format!(
                "paths {} to {}: {} down to {}",
                grouped(first.rank as u64),
                grouped(last.rank as u64),
                duration(first.length_ns),
                duration(last.length_ns)
            )
        };
        let more = if report.more { ", -k N lists more" } else { "" };
        let text = style.text(&format!("{text}; --show N shows one{more}."));
        let mut out: &mut dyn Write = out;
        table::wrap(&mut out, style, Paint::Plain, "", &text, "  ")?;
    }
    let rest = if report.more {
        return writeln!(out);
    } else if (report.paths.len() as u128) < report.counts.all {
        "All others are shorter than the length that you gave.".to_owned()
    } else if report.counts.all == 1 {
        "There is no other path.".to_owned()
    } else {
        format!("There are no more than {}.", paths(report.counts.all))
    };
    writeln!(out, "{rest}\n")
}

/// Writes one path with its route.
pub fn one(path: &PathRow, style: &Style, out: &mut dyn Write) -> io::Result<()> {
    path_line(path, style, out)?;
    stays(path.route.as_deref().unwrap_or_default(), style, out)
}

fn path_line(path: &PathRow, style: &Style, out: &mut dyn Write) -> io::Result<()> {
    let lacks = 1.0 - path.nearness;
    let text = match lacks {
        _ if path.nearness >= 1.0 => format!("The longest way ({}):", duration(path.length_ns)),
        lacks if lacks < ALIKE => format!("Way {}, as long:", path.rank),
        lacks => format!("Way {} ({}, {} shorter):", path.rank, duration(path.length_ns), share(lacks, 1.0)),
    };
    writeln!(out, "{}", style.paint(Paint::Bold, &style.text(&text)))
}

fn stays(route: &[Stay], style: &Style, out: &mut dyn Write) -> io::Result<()> {
    let [first, last] = STAYS;
    // A single stay is shown: "1 more turn" would take as much room.
    let left_out = if route.len() > first + last + 1 { first..route.len() - last } else { 0..0 };
    for (number, stay) in route.iter().enumerate() {
        if number == left_out.start && !left_out.is_empty() {
            let time: f64 = route[left_out.clone()].iter().map(Stay::length_ns).sum();
            let text = format!("  … {}, {}", counted(left_out.len(), "more turn"), duration(time));
            writeln!(out, "{}", style.paint(Paint::Dim, &style.text(&text)))?;
        }
        if !left_out.contains(&number) {
            // If there is room, each stay is one line: a route should be readable at a glance.
            let text = style.text(&format!("{}{}: {}", stay.thread, by(&stay.by), parts(stay)));
            if style.width < NARROW {
                let mut out: &mut dyn Write = out;
                table::wrap(&mut out, style, Paint::Plain, "  ", &text, "    ")?;
            } else {
                writeln!(out, "{}", clip(&format!("  {text}"), style.width, style))?;
            }
        }
    }
    Ok(())
}

/// What the path followed to this thread, such as ` (lock registry.gate)`; empty where the run begins.
fn by(by: &str) -> String {
    match by {
        "start" => String::new(),
        by => format!(" ({})", bare_name(by)),
    }
}

/// The parts of a stay, summed by function, the longest first: `parse 3.10 ms, hash 1.00 ms`.
fn parts(stay: &Stay) -> String {
    let mut sums: Vec<(String, f64, u64)> = Vec::new();
    for part in &stay.parts {
        let name = doing(&part.what);
        match sums.iter_mut().find(|(known, ..)| *known == name) {
            Some((_, time, times)) => {
                *time += part.length_ns;
                *times += part.times;
            }
            None => sums.push((name, part.length_ns, part.times)),
        }
    }
    sums.sort_by(|a, b| b.1.total_cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    let mut texts: Vec<String> =
        sums.iter().take(PARTS).map(|(name, time, _)| format!("{name} {}", duration(*time))).collect();
    // A single further part is named instead of counted.
    if let [(name, time, _)] = sums.get(PARTS..).unwrap_or_default() {
        texts.push(format!("{name} {}", duration(*time)));
    } else if let Some(rest) = sums.get(PARTS..).filter(|rest| !rest.is_empty()) {
        let time: f64 = rest.iter().map(|(_, time, _)| time).sum();
        texts.push(format!("{} more {}", rest.len(), duration(time)));
    }
    if texts.is_empty() { "no time".to_owned() } else { texts.join(", ") }
}

fn shown_path(path: &ShownPath, style: &Style, out: &mut dyn Write) -> io::Result<()> {
    let title = format!("path {}: {}", path.rank, duration(path.length_ns));
    writeln!(out, "{}", style.paint(Paint::Bold, &style.text(&title)))?;
    line(out, style, Paint::Bold, "thread:operation", &["from", "takes"].map(str::to_owned))?;
    for edge in &path.edges {
        let what = edge.what.as_ref().map(doing);
        let by = edge.by.as_ref().map(|by| format!("by {by}"));
        let what = [by, what].into_iter().flatten().collect::<Vec<_>>().join(": ");
        let cells = [duration(edge.start_ns), duration(edge.length_ns)];
        line(out, style, Paint::Plain, &format!("{}:{}  {what}", edge.thread, edge.operation), &cells)?;
    }
    writeln!(out)
}

fn segments(report: &PathsReport, style: &Style, out: &mut dyn Write) -> io::Result<()> {
    let titles = ["length", "critical", "near"].map(str::to_owned);
    line(out, style, Paint::Bold, "operation", &titles)?;
    for segment in &report.segments {
        let count = |count: u32| grouped(u64::from(count));
        let cells = [duration(segment.length_ns), count(segment.critical_paths), count(segment.near_paths)];
        line(
            out,
            style,
            Paint::Plain,
            &operation(&segment.thread, segment.operation, &segment.what),
            &cells,
        )?;
    }
    writeln!(out)?;
    note(
        out,
        style,
        "How many of the listed paths go through each operation: those as long as the longest, and shorter ones.",
    )?;
    writeln!(out)
}
