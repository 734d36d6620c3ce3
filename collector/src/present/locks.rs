//! The report by lock: who holds up whom, and what is computed under each lock on the critical path.

use super::cell::{duration, grouped};
use super::style::{Paint, Style};
use super::table::{self, Layout};
use super::text::{percent, plural, predicted};
use engine::report::{CpuResult, LockRow, Report};
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
    let shown = shown.min(report.locks.len());
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
        for (number, lock) in report.locks.iter().enumerate().take(shown) {
            heading(out, lock, style)?;
            let cells: Vec<String> = results
                .iter()
                .map(|result| {
                    let held = result.locks_held_ns.get(number).copied().unwrap_or(0.0);
                    percent(if result.time_ns > 0.0 { held / result.time_ns } else { 0.0 })
                })
                .collect();
            table::line(out, &layout, style, "  held", Paint::Plain, &cells)?;
            table::wrap(out, style, Paint::Plain, "  ", &uses(lock, style), "  ")?;
        }
        if shown > 0 {
            writeln!(out)?;
        }
    }
    let rest = report.locks.len() - shown;
    if rest > 0 {
        writeln!(out, "{}: --top {} shows all.\n", plural(rest, "more lock"), report.locks.len())?;
    }
    if report.locks.is_empty() {
        let none = "No lock operations are in this recording. They are recorded of a command that longpole starts \
                    (longpole record -- COMMAND) and that uses its C library's locks; see --interpose.";
        table::wrap(out, style, Paint::Plain, "", none, "")?;
        writeln!(out)?;
    }
    Ok(())
}

fn heading(out: &mut impl Write, lock: &LockRow, style: &Style) -> io::Result<()> {
    let holder = lock.holder.as_deref().map(|holder| format!("  taken in {}", style.text(holder)));
    let name = style.paint(Paint::Bold, &style.fit(&lock.lock, 40));
    let room = style.width.saturating_sub(42).max(24);
    let beside = holder.map(|holder| style.fit(&holder, room)).unwrap_or_default();
    writeln!(out, "{name}{}", style.paint(Paint::Dim, &beside))
}

/// `taken 1,000 times, 12.0 % of them not free; waited for 3.2 ms, held for 10 ms`
fn uses(lock: &LockRow, style: &Style) -> String {
    let times =
        if lock.acquisitions == 1 { "once".into() } else { format!("{} times", grouped(lock.acquisitions)) };
    let mut text = format!("taken {times}");
    if let Some(contended) = lock.contended {
        text.push_str(&format!(", {} not free", percent(contended as f64 / lock.acquisitions.max(1) as f64)));
    }
    if let (Some(wait), Some(hold)) = (lock.wait_ns, lock.hold_ns) {
        text.push_str(&format!("; waited for {}, held for {}", duration(wait), duration(hold)));
    }
    style.text(&text)
}
