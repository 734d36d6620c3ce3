//! LOCKS and THREADS.

use super::{clip, name_columns, named};
use crate::present::cell::{duration, grouped, width};
use crate::present::short::short;
use crate::present::style::{Paint, Style};
use engine::limit::{Limits, LockUse, ThreadUse};
use engine::program::bare_name;
use std::io::{self, Write};

/// Rows of each table.
const ROWS: usize = 4;
/// Columns of a name.
const NAME: usize = 22;
/// Columns of a thread's bar.
const BAR: usize = 24;

pub(super) fn locks(out: &mut impl Write, limits: &Limits, all: bool, style: &Style) -> io::Result<()> {
    if limits.locks.is_empty() {
        return Ok(());
    }
    let shown = if all { usize::MAX } else { ROWS };
    let columns = name_columns(NAME, style);
    let title = format!("{:columns$} {:>6} {:>9} {:>9}  its holder runs", "LOCKS", "held", "waits", "waited");
    writeln!(out, "\n{}", style.paint(Paint::Bold, &clip(&title, style.width, style)))?;
    for lock in limits.locks.iter().take(shown) {
        let LockUse { lock, locks, held_share, waits, waited_ns, holder } = lock;
        let name = match locks {
            1 => bare_name(lock).to_owned(),
            _ => format!("{locks} as {}", bare_name(lock)),
        };
        let name = style.fit(&name, columns);
        let pad = " ".repeat(columns.saturating_sub(width(&name)));
        // Of a lock that is replayed as recorded it is not known when it is free.
        let held = if *held_share > 0.0 { format!("{:.0} %", held_share * 100.0) } else { "-".to_owned() };
        let holder = holder
            .as_ref()
            .map_or(String::new(), |part| format!("{} {:.0} %", short(&part.function), part.share * 100.0));
        let waited = style.text(&duration(*waited_ns));
        let pad_waited = " ".repeat(9usize.saturating_sub(width(&waited)));
        let line = format!("{name}{pad} {held:>6} {:>9} {pad_waited}{waited}  {holder}", grouped(*waits));
        writeln!(out, "{}", clip(&line, style.width, style))?;
    }
    more(out, limits.locks.len().saturating_sub(shown), "lock", style)
}

pub(super) fn threads(out: &mut impl Write, limits: &Limits, all: bool, style: &Style) -> io::Result<()> {
    let worth = |of: &&ThreadUse| all || of.running + of.ready + of.spinning + of.lock >= 0.005;
    let threads: Vec<&ThreadUse> = limits.threads.iter().filter(worth).collect();
    if threads.is_empty() {
        return Ok(());
    }
    let shown = if all { usize::MAX } else { ROWS };
    let columns = name_columns(NAME, style);
    // Hardly any program does: the column is there where one does.
    let spins = threads.iter().any(|of| of.spinning >= 0.005);
    let bar_columns = if spins { BAR - 9 } else { BAR };
    let spinning = |text: &str| if spins { format!(" {text:>8}") } else { String::new() };
    let title = format!(
        "{:columns$} {:>7} {:>7}{} {:>7} {:>7}",
        "THREADS",
        "running",
        "ready",
        spinning("spinning"),
        "lock",
        "other"
    );
    writeln!(out, "\n{}", style.paint(Paint::Bold, &clip(&title, style.width, style)))?;
    for of in threads.iter().take(shown) {
        let first = of.names.first().map_or("", String::as_str);
        let name = match of.names.len() {
            1 => first.to_owned(),
            count => format!("{} x{count}", first.rsplit_once('/').map_or(first, |(name, _)| name)),
        };
        let percent = |share: f64| format!("{:.0} %", share * 100.0);
        let mut line = format!(
            "{} {:>7} {:>7}{} {:>7} {:>7}",
            named(&name, true, style, columns),
            percent(of.running),
            percent(of.ready),
            spinning(&percent(of.spinning)),
            percent(of.lock),
            percent(of.other)
        );
        if width(&line) + 2 + bar_columns <= style.width {
            line.push_str("  ");
            line.push_str(&bar(of, bar_columns));
        }
        writeln!(out, "{}", clip(&line, style.width, style))?;
    }
    more(out, threads.len().saturating_sub(shown), "kind of thread", style)
}

/// `######==SSLLLLLL........`: running, ready, spinning, waiting for a lock, for something else.
fn bar(of: &ThreadUse, columns: usize) -> String {
    let mut bar = String::with_capacity(columns);
    let mut sum = 0.0;
    let states = [(of.running, '#'), (of.ready, '='), (of.spinning, 'S'), (of.lock, 'L'), (of.other, '.')];
    for (share, sign) in states {
        sum += share;
        let until = ((sum * columns as f64).round() as usize).min(columns);
        bar.extend(std::iter::repeat_n(sign, until.saturating_sub(bar.len())));
    }
    bar
}

pub(super) fn more(out: &mut impl Write, rest: usize, what: &str, style: &Style) -> io::Result<()> {
    match rest {
        0 => Ok(()),
        rest => {
            let text = format!("({rest} more {what}{}: --all)", if rest == 1 { "" } else { "s" });
            writeln!(out, "{}", style.paint(Paint::Dim, &text))
        }
    }
}
