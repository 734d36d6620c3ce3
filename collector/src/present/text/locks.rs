//! The report by lock: which threads delay which others, and what is computed under each lock on the critical path.

use super::lock_rows::rows;
use super::waits::shares;
use crate::cell::{counted, duration, grouped, whole_percent as percent, width};
use crate::present::frame::{clip, more};
use crate::present::style::{Paint, Style};
use crate::present::table;
use crate::present::words::short::short;
use engine::limit::Limits;
use engine::program::{ObjectKind, RecordedObject, bare_name};
use engine::report::{CpuResult, Report};
use std::io::{self, Write};

/// Width of a name's column.
const NAME: usize = 20;
/// Number of locks that get more lines than their row.
const DETAILS: usize = 3;

/// Writes the first `shown` locks, with shares for `result`; without locks, why there are none. Locks for which no thread
/// waited are only counted, unless `all` are asked for.
pub(in crate::present) fn write(
    out: &mut dyn Write,
    report: &Report,
    limits: &Limits,
    result: &CpuResult,
    (shown, all): (usize, bool),
    style: &Style,
) -> io::Result<()> {
    let mut rows = rows(report);
    let known = rows.len();
    rows.retain(|row| all || row.is_waited_for(limits));
    let free = known - rows.len();
    let words: Vec<&RecordedObject> = futexes(report);
    if report.locks.is_empty() && words.is_empty() {
        let none = "This recording has no lock operations. longpole records them of programs that use the locks of a C library whose functions have names (see --interpose).";
        let mut out = out;
        return table::wrap(&mut out, style, Paint::Plain, "", none, "");
    }
    if !rows.is_empty() {
        let kinds = format!("{:NAME$} {:>8} {:>8}", "", "predicted", "recorded");
        writeln!(out, "{}", style.paint(Paint::Dim, &kinds))?;
        let title = format!(
            "{:NAME$} {:>7} {:>9} {:>8} {:>8} {:>8}  taken in",
            "LOCKS", "on path", "taken", "not free", "waited", "held"
        );
        writeln!(out, "{}", style.paint(Paint::Bold, &clip(&title, style.width, style)))?;
    }
    let time = |ns: Option<f64>| ns.map_or("-".to_owned(), |ns| style.text(&duration(ns)));
    for row in rows.iter().take(shown) {
        let name = style.fit(bare_name(&row.name), NAME);
        let on_path = result.share(row.held(result));
        let (taken, contended) = (row.taken(), row.contended());
        let not_free =
            contended.filter(|_| taken > 0).map_or("-".to_owned(), |count| percent(count / taken as f64));
        let holder = row.holder.map(short).unwrap_or_default();
        let cell = |text: String, columns: usize| {
            format!("{}{text}", " ".repeat(columns.saturating_sub(width(&text))))
        };
        let about = |text: String| if row.is_estimated && text != "-" { format!("~{text}") } else { text };
        let line = format!(
            "{name}{} {} {} {} {} {}  {}",
            " ".repeat(NAME.saturating_sub(width(&name))),
            cell(percent(on_path), 7),
            cell(about(grouped(taken)), 9),
            cell(about(not_free), 8),
            cell(time(row.waited()), 8),
            cell(about(time(row.held_for())), 8),
            style.text(&holder)
        );
        writeln!(out, "{}", clip(&line, style.width, style))?;
    }
    more(out, rows.len().saturating_sub(shown), "lock", &format!("--top {} shows all", rows.len()), style)?;
    if free > 0 {
        let text = format!("({} without a waiter: --all)", counted(free, "lock"));
        table::wrap(&mut &mut *out, style, Paint::Dim, "", &text, " ")?;
    }
    for row in rows.iter().take(DETAILS.min(shown)) {
        for (number, line) in row.more().iter().enumerate() {
            let mut out: &mut dyn Write = out;
            let first = if number == 0 {
                format!("{}: ", style.fit(bare_name(&row.name), NAME))
            } else {
                "  ".to_owned()
            };
            table::wrap(&mut out, style, Paint::Plain, &first, &style.text(line), "  ")?;
        }
    }
    if !rows.is_empty() {
        let what = "On path: share of the predicted time in which a thread computes with the lock held while everything waits for it. Other columns are as recorded; waited: until the thread runs with the lock.";
        let estimated = " ~: estimated from waits and samples, since lock operations were not recorded.";
        let is_estimated = rows.iter().take(shown).any(|row| row.is_estimated);
        let what = format!("{what}{}", if is_estimated { estimated } else { "" });
        let mut out: &mut dyn Write = out;
        table::wrap(&mut out, style, Paint::Dim, "", &what, "")?;
    }
    if !rows.is_empty() && !words.is_empty() {
        writeln!(out)?;
    }
    futex_rows(out, &words, shown.min(5), style)
}

/// Futex words without recorded operations; those with the longest waits come first.
fn futexes(report: &Report) -> Vec<&RecordedObject> {
    let mut words: Vec<&RecordedObject> =
        report.recorded.objects.iter().filter(|object| object.kind == ObjectKind::Futex).collect();
    words.sort_by(|a, b| b.wait_ns.cmp(&a.wait_ns).then_with(|| a.name.cmp(&b.name)));
    words
}

fn futex_rows(out: &mut dyn Write, words: &[&RecordedObject], shown: usize, style: &Style) -> io::Result<()> {
    if words.is_empty() {
        return Ok(());
    }
    let title = format!("{:NAME$} {:>7} {:>9}  waits in", "FUTEXES", "waits", "waited");
    writeln!(out, "{}", style.paint(Paint::Bold, &clip(&title, style.width, style)))?;
    for word in words.iter().take(shown) {
        let name = style.fit(&word.name, NAME);
        let waited = style.text(&duration(word.wait_ns as f64));
        let line = format!(
            "{name}{} {:>7} {}{waited}  {}",
            " ".repeat(NAME.saturating_sub(width(&name))),
            grouped(word.waits),
            " ".repeat(9usize.saturating_sub(width(&waited))),
            style.text(&shares(&word.waiters))
        );
        writeln!(out, "{}", clip(&line, style.width, style))?;
    }
    let rest = words.len().saturating_sub(shown);
    if rest > 0 {
        writeln!(out, "({}: --json has all)", counted(rest, "more futex"))?;
    }
    Ok(())
}
