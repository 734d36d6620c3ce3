//! The report by lock: who holds up whom, and what is computed under each lock on the critical path.

use super::cell::{duration, grouped};
use super::lock_rows::rows;
use super::style::{Paint, Style};
use super::table::{self, Layout};
use super::text::{percent, plural, predicted};
use super::waits::shares;
use engine::program::{FUTEX, RecordedObject};
use engine::report::{CpuResult, Report};
use std::io::{self, Write};

const LABEL: usize = 26;
const CELL: usize = 9;

/// Writes the `shown` first locks; says what is missing if there are none.
pub(super) fn write(out: &mut impl Write, report: &Report, shown: usize, style: &Style) -> io::Result<()> {
    if report.results.is_empty() {
        return Ok(());
    }
    let count = report.results.len();
    let layout = Layout::new(style, count, CELL, LABEL);
    let rows = rows(report);
    let words: Vec<&RecordedObject> = futexes(report);
    let all = shown;
    let shown = shown.min(rows.len());
    for block in (0..count).collect::<Vec<_>>().chunks(layout.cells_per_block) {
        let results: Vec<&CpuResult> = block.iter().map(|&column| &report.results[column]).collect();
        predicted(out, &layout, style, &results)?;
        writeln!(out)?;
        if shown > 0 {
            let what = "Share of the predicted time on the critical path that is computed with the lock held: \
                        what can be gained by holding it for less long.";
            table::wrap(out, style, Paint::Dim, "", what, "")?;
            writeln!(out)?;
        }
        for row in rows.iter().take(shown) {
            heading(out, &row.name, row.holder, style)?;
            let cells: Vec<String> = results
                .iter()
                .map(|result| {
                    percent(if result.time_ns > 0.0 { row.held(result) / result.time_ns } else { 0.0 })
                })
                .collect();
            table::line(out, &layout, style, "  held", Paint::Plain, &cells)?;
            table::wrap(out, style, Paint::Plain, "  ", &style.text(&row.uses()), "  ")?;
            for line in row.more() {
                table::wrap(out, style, Paint::Plain, "  ", &style.text(&line), "  ")?;
            }
        }
        if shown > 0 {
            writeln!(out)?;
        }
    }
    let rest = rows.len() - shown;
    if rest > 0 {
        writeln!(out, "{}: --top {} shows all.\n", plural(rest, "more lock"), rows.len())?;
    }
    if report.locks.is_empty() && words.is_empty() {
        let none = "No lock operations are in this recording. They are recorded of programs that use their C \
                    library's locks, if it has names for its functions; the summary of the recording said what was \
                    chosen, see --interpose.";
        table::wrap(out, style, Paint::Plain, "", none, "")?;
        writeln!(out)?;
    }
    futex_rows(out, &words, all, style)
}

fn heading(out: &mut impl Write, name: &str, holder: Option<&str>, style: &Style) -> io::Result<()> {
    let holder = holder.map(|holder| format!("  taken in {}", style.text(holder)));
    let name = style.paint(Paint::Bold, &style.fit(name, 40));
    let room = style.width.saturating_sub(42).max(24);
    let beside = holder.map(|holder| style.fit(&holder, room)).unwrap_or_default();
    writeln!(out, "{name}{}", style.paint(Paint::Dim, &beside))
}

/// Words that no recorded operation is about, the one with the longest waits first.
fn futexes(report: &Report) -> Vec<&RecordedObject> {
    let mut words: Vec<&RecordedObject> =
        report.recorded.objects.iter().filter(|object| object.kind == FUTEX).collect();
    words.sort_by(|a, b| b.wait_ns.cmp(&a.wait_ns).then_with(|| a.name.cmp(&b.name)));
    words
}

fn futex_rows(
    out: &mut impl Write,
    words: &[&RecordedObject],
    shown: usize,
    style: &Style,
) -> io::Result<()> {
    if words.is_empty() {
        return Ok(());
    }
    let what = "Futexes: locks and other objects of which only waits are seen, not how often they were free.";
    table::wrap(out, style, Paint::Dim, "", what, "")?;
    writeln!(out)?;
    for word in words.iter().take(shown) {
        heading(out, &word.name, None, style)?;
        let times = if word.waits == 1 { "once".into() } else { format!("{} times", grouped(word.waits)) };
        let mut text = format!("waited for {times}, {} in all", duration(word.wait_ns as f64));
        if !word.waiters.is_empty() {
            text.push_str(&format!("; in {}", shares(&word.waiters)));
        }
        if !word.wakers.is_empty() {
            text.push_str(&format!("; woken by {}", shares(&word.wakers)));
        }
        if word.moved > 0 {
            text.push_str(&format!("; {} moved to another word", plural(word.moved as usize, "waiter")));
        }
        table::wrap(out, style, Paint::Plain, "  ", &style.text(&text), "  ")?;
    }
    if words.len() > shown {
        writeln!(out, "{}: --top {} shows all.", plural(words.len() - shown, "more futex"), words.len())?;
    }
    writeln!(out)
}
