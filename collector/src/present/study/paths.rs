//! `longpole paths` for people: what can be gained at most, and the longest paths as ways through the threads.

use super::listing::{headline, line, note, placed, share};
use super::slack::{doing, operation};
use crate::present::cell::{duration, grouped};
use crate::present::style::{Paint, Style};
use crate::present::text::{findings, plural, trust};
use engine::graph::{BenefitRow, PathRow, PathsReport, ShownPath, Stay};
use std::io::{self, Write};

/// Paths whose way is written.
pub const ROUTES: usize = 3;
/// Stays of a way that are written at its beginning, and at its end.
const STAYS: [usize; 2] = [4, 2];
/// Parts of a stay that are named.
const PARTS: usize = 3;

/// The `top` first of each kind.
pub fn text(report: &PathsReport, top: usize, style: &Style, out: &mut dyn Write) -> io::Result<()> {
    headline(out, style, &sentence(report))?;
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
    let mut out = out;
    trust(&mut out, &report.trust, style)?;
    findings(&mut out, &report.findings, style)
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
        count => format!(
            "The {} longest of {} are all within {} of {length}",
            grouped(count as u64),
            paths(report.counts.all),
            share(lacks, report.length_ns)
        ),
    };
    let first = report.benefit.iter().find(|row| row.kind == "function" && row.maximum_benefit_ns > 0.0);
    let gain = match first {
        Some(row) => format!(
            "{} can gain the most, at most {} ({}) on unlimited CPUs",
            row.name,
            duration(row.maximum_benefit_ns),
            share(row.maximum_benefit_ns, report.length_ns)
        ),
        None => "no function alone can gain anything".to_owned(),
    };
    format!("{listed}: {gain}.")
}

/// `12 paths`, `about 3e40 paths`.
pub fn paths(count: u128) -> String {
    match u64::try_from(count) {
        Ok(count) if count < 1_000_000_000 => plural(usize::try_from(count).unwrap_or(usize::MAX), "path"),
        _ if count == u128::MAX => "more paths than can be counted".to_owned(),
        _ => format!("about {:.0e} paths", count as f64),
    }
}

fn benefits(report: &PathsReport, top: usize, style: &Style, out: &mut dyn Write) -> io::Result<()> {
    let titles = ["on the path", "at most", "paths", "more paths"].map(str::to_owned);
    for (kind, title) in [
        ("function", "function"),
        ("lock", "while a lock is held"),
        ("thread", "thread"),
        ("process", "process"),
        ("cpu", "computed on"),
        ("class", "kind of time"),
    ] {
        let rows: Vec<&BenefitRow> = report.benefit.iter().filter(|row| row.kind == kind).collect();
        // One process says what the whole does.
        if rows.is_empty() || kind == "process" && rows.len() == 1 {
            continue;
        }
        line(out, style, Paint::Bold, title, &titles)?;
        for row in rows.iter().take(top) {
            let settled = if row.settled { "no change" } else { "may lower" };
            let cells = [
                duration(row.critical_path_ns),
                duration(row.maximum_benefit_ns),
                format!("{} + {}", grouped(row.critical_paths as u64), grouped(row.near_paths as u64)),
                settled.to_owned(),
            ];
            let name = if kind == "cpu" { format!("CPU {}", row.name) } else { row.name.clone() };
            line(out, style, Paint::Plain, &placed(&name, row.location.as_deref()), &cells)?;
        }
        if let Some(more) = rows.len().checked_sub(top).filter(|more| *more > 0) {
            writeln!(out, "{}: --top {} shows all.", plural(more, &format!("more {kind}")), rows.len())?;
        }
        writeln!(out)?;
    }
    if !report.benefit.is_empty() {
        let listed = plural(report.paths.len(), "path");
        let what = format!(
            "On the path: its time on the critical path. At most: what can be gained by making it faster, seen from \
             {listed}: another one becomes the longest then. Paths: how many of these go through it, critical ones + \
             shorter ones. More paths: whether looking at more of them would lower what can be gained."
        );
        note(out, style, &what)?;
        writeln!(out)?;
    }
    Ok(())
}

fn routes(report: &PathsReport, style: &Style, out: &mut dyn Write) -> io::Result<()> {
    let with_route = report.paths.iter().filter_map(|path| Some((path, path.route.as_ref()?)));
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
        writeln!(out, "{}; --show N shows any of them.", style.text(&text))?;
    }
    let rest = if report.more {
        "There are more: -k N lists more of them.".to_owned()
    } else if (report.paths.len() as u128) < report.counts.all {
        "All others are shorter than was asked for.".to_owned()
    } else if report.counts.all == 1 {
        "There is no other path.".to_owned()
    } else {
        format!("There are no more than {}.", paths(report.counts.all))
    };
    writeln!(out, "{rest}\n")
}

/// One path, with its way.
pub fn one(path: &PathRow, style: &Style, out: &mut dyn Write) -> io::Result<()> {
    path_line(path, style, out)?;
    stays(path.route.as_deref().unwrap_or_default(), style, out)
}

fn path_line(path: &PathRow, style: &Style, out: &mut dyn Write) -> io::Result<()> {
    let text = if path.nearness < 1.0 {
        let of = nearness(path.nearness);
        format!("path {}: {}, {of} % of the longest", path.rank, duration(path.length_ns))
    } else {
        format!("path {}: {}, critical", path.rank, duration(path.length_ns))
    };
    writeln!(out, "{}", style.paint(Paint::Bold, &style.text(&text)))
}

/// In percent, with as many decimals as tell it from 100.
fn nearness(nearness: f64) -> String {
    let percent = nearness * 100.0;
    let decimals = (2..=8).find(|decimals| (100.0 - percent) * 10_f64.powi(*decimals) >= 1.0).unwrap_or(9);
    format!("{percent:.*}", usize::try_from(decimals).unwrap_or(2))
}

fn stays(route: &[Stay], style: &Style, out: &mut dyn Write) -> io::Result<()> {
    let [first, last] = STAYS;
    // One that would be left out alone takes no more room than saying so.
    let left_out = if route.len() > first + last + 1 { first..route.len() - last } else { 0..0 };
    for (number, stay) in route.iter().enumerate() {
        if number == left_out.start && !left_out.is_empty() {
            let time: f64 = route[left_out.clone()].iter().map(Stay::length_ns).sum();
            let text = format!("  … {} with {}", plural(left_out.len(), "more stay"), duration(time));
            writeln!(out, "{}", style.paint(Paint::Dim, &style.text(&text)))?;
        }
        if !left_out.contains(&number) {
            let mut plain: &mut dyn Write = out;
            let text = format!("{} (by {}): {}", stay.thread, stay.by, parts(stay));
            crate::present::table::wrap(&mut plain, style, Paint::Plain, "  ", &style.text(&text), "      ")?;
        }
    }
    Ok(())
}

/// `parse 3.10 ms ×12, hash 1.00 ms`: the longest first, all of one function together.
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
    let mut texts: Vec<String> = sums
        .iter()
        .take(PARTS)
        .map(|(name, time, times)| {
            let times = if *times > 1 { format!(" ×{}", grouped(*times)) } else { String::new() };
            format!("{name} {}{times}", duration(*time))
        })
        .collect();
    // One that would be left out alone is named.
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
