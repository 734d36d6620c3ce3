//! Shows a single row: its histogram, its states, its callers and callees, in the style of gprof.

use super::screen::bars;
use super::words::{name, named, percent, sentence, share};
use crate::cell::file_name;
use crate::cell::{duration, grouped, width};
use crate::present::style::{Paint, Style};
use crate::present::table;
use engine::parallelism::{Link, Parallelism, ParallelismRow, ParallelismRowKind, StateTime};
use std::io::{self, Write};

/// Largest number of callers, and of callees, that are shown.
const LINKS: usize = 6;

/// Writes the row's page.
pub fn write(
    run: &Parallelism,
    row: &ParallelismRow,
    style: &Style,
    mut out: &mut dyn Write,
) -> io::Result<()> {
    let out = &mut out;
    let title = match run.advice(row) {
        Some(advice) => sentence(run, row, advice),
        None => format!("{}: {} of the run.", name(row), share(row.normalized_total_ns, run)),
    };
    table::wrap(out, style, Paint::Bold, "", &style.text(&title), "")?;
    table::wrap(out, style, Paint::Plain, "", &style.text(&facts(run, row)), "")?;
    if row.normalized_total_ns > 0 {
        writeln!(out)?;
        histogram(run, row, style, out)?;
    }
    states(row, style, out)?;
    if !row.queue.is_empty() && row.queue_length() > 0.0 {
        queue(run, row, style, out)?;
    }
    let word = if row.kind == ParallelismRowKind::Function { "CALLED BY" } else { "TAKEN BY" };
    links(run, word, &row.callers, style, out)?;
    let word = if row.kind == ParallelismRowKind::Function { "CALLS" } else { "RUNS MEANWHILE" };
    links(run, word, &row.callees, style, out)
}

fn facts(run: &Parallelism, row: &ParallelismRow) -> String {
    let mut facts = String::new();
    if let Some(location) = &row.location {
        facts.push_str(&format!("{}: ", file_name(location)));
    }
    facts.push_str(&format!(
        "{} of {} with all done on its behalf, {} itself",
        duration(row.normalized_total_ns as f64),
        duration(run.elapsed_ns as f64),
        duration(row.normalized_self_ns as f64)
    ));
    if let Some(calls) = row.calls.filter(|_| row.kind != ParallelismRowKind::Thread) {
        let word = match (row.kind, calls) {
            (ParallelismRowKind::Function, 1) => "call",
            (ParallelismRowKind::Function, _) => "calls",
            (_, 1) => "access",
            _ => "accesses",
        };
        facts.push_str(&format!("; {} {word}", grouped(calls)));
    }
    if let Some(wait) = row.average_wait_ns().filter(|_| row.queue_length() > 0.0) {
        facts.push_str(&format!(", {} waited for each", duration(wait)));
    }
    facts.push('.');
    facts
}

/// Writes the row's normalized time by number of busy CPUs (1989, Fig. 1).
pub(super) fn histogram(
    run: &Parallelism,
    row: &ParallelismRow,
    style: &Style,
    out: &mut impl Write,
) -> io::Result<()> {
    if row.normalized_total_ns == 0 {
        return Ok(());
    }
    writeln!(out, "{}", style.paint(Paint::Bold, "BUSY CPUs   of run   # itself, = on its behalf"))?;
    let most = row.total_by_busy.iter().map(|(level, _)| *level).max().unwrap_or(0);
    let sum = |cells: &[(u32, u64)], from: u32, to: u32| -> f64 {
        let inside = cells.iter().filter(|(level, _)| (from..=to).contains(level));
        inside.map(|(_, ns)| *ns as f64).sum::<f64>() / (run.elapsed_ns as f64).max(1.0)
    };
    let bars: Vec<(u32, u32)> = bars(most).into_iter().filter(|(from, _)| *from > 0).collect();
    let parts = bars.iter().map(|&(from, to)| sum(&row.total_by_busy, from, to));
    let largest = parts.fold(0.0, f64::max).max(f64::MIN_POSITIVE);
    for (from, to) in bars {
        let (total, own) = (sum(&row.total_by_busy, from, to), sum(&row.by_busy, from, to));
        let label = if from == to { from.to_string() } else { format!("{from} to {to}") };
        let line = format!("{label:>9}{:>9}   ", percent(total));
        let room = style.width.saturating_sub(width(&line)).min(50) as f64;
        let whole = (total / largest * room).round() as usize;
        let dark = ((own / largest * room).round() as usize).min(whole);
        let line = format!("{line}{}{}", "#".repeat(dark), "=".repeat(whole - dark));
        writeln!(out, "{}", line.trim_end())?;
    }
    Ok(())
}

fn states(row: &ParallelismRow, style: &Style, out: &mut impl Write) -> io::Result<()> {
    let head = format!("{:16}{:>13}{:>13}{:>22}", "ITS TIME IS", "itself", "with all", "runnable threads");
    writeln!(out, "\n{}", style.paint(Paint::Bold, &head))?;
    let of = [
        ("busy", &row.own.busy, &row.total.busy),
        ("spinning", &row.own.spinning, &row.total.spinning),
        ("blocked", &row.own.blocked, &row.total.blocked),
        ("ready", &row.own.ready, &row.total.ready),
    ];
    for (word, own, total) in of {
        if own.ns == 0 && total.ns == 0 {
            continue;
        }
        let time = |state: &StateTime| duration(state.ns as f64);
        let pad = |text: String, columns: usize| {
            let text = style.text(&text);
            format!("{}{text}", " ".repeat(columns.saturating_sub(width(&text))))
        };
        let line = format!("{word:16}{}{}{:>22.1}", pad(time(own), 13), pad(time(total), 13), total.runnable);
        writeln!(out, "{line}")?;
    }
    Ok(())
}

fn queue(run: &Parallelism, row: &ParallelismRow, style: &Style, out: &mut impl Write) -> io::Result<()> {
    writeln!(out, "\n{}", style.paint(Paint::Bold, "WAITING THREADS   of run"))?;
    let most = row.queue.iter().map(|(length, _)| *length).max().unwrap_or(0);
    for (from, to) in bars(most) {
        let inside = row.queue.iter().filter(|(length, _)| (from..=to).contains(length));
        let part = inside.map(|(_, ns)| *ns as f64).sum::<f64>() / (run.elapsed_ns as f64).max(1.0);
        let label = if from == to { from.to_string() } else { format!("{from} to {to}") };
        let line =
            format!("{label:>15}{:>9}   {}", percent(part), "#".repeat((part * 40.0).round() as usize));
        writeln!(out, "{}", line.trim_end())?;
    }
    Ok(())
}

fn links(
    run: &Parallelism,
    word: &str,
    links: &[Link],
    style: &Style,
    out: &mut impl Write,
) -> io::Result<()> {
    let links: Vec<&Link> = links.iter().filter(|link| link.normalized_ns > 0).collect();
    if links.is_empty() {
        return Ok(());
    }
    let head = format!("{word:32}{:>10}{:>12}", "of run", "calls");
    writeln!(out, "\n{}", style.paint(Paint::Bold, &head))?;
    for link in links.iter().take(LINKS) {
        let name = style.fit(&named(link.name.as_deref(), link.kind), 31);
        let pad = " ".repeat(32usize.saturating_sub(width(&name)));
        let calls = if link.calls == 0 { "-".to_owned() } else { grouped(link.calls) };
        writeln!(out, "{name}{pad}{:>10}{calls:>12}", share(link.normalized_ns, run))?;
    }
    match links.len().saturating_sub(LINKS) {
        0 => Ok(()),
        rest => writeln!(out, "{}", style.paint(Paint::Dim, &format!("({rest} more: --json)"))),
    }
}
