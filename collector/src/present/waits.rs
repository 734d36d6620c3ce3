//! The report by wait: what threads slept for, as recorded.

use super::cell::{duration, grouped};
use super::style::{Paint, Style};
use super::table;
use super::text::plural;
use engine::program::{RecordedWait, Share};
use engine::report::Report;
use std::io::{self, Write};

/// Writes the `shown` longest kinds of waits, and what was idle below them.
pub(super) fn write(out: &mut impl Write, report: &Report, shown: usize, style: &Style) -> io::Result<()> {
    let waits = &report.recorded.waits;
    if waits.is_empty() {
        let none = "No waits were recorded: in a program that was written by hand nothing was.";
        table::wrap(out, style, Paint::Plain, "", none, "")?;
        return writeln!(out);
    }
    let (idle, busy): (Vec<&RecordedWait>, Vec<&RecordedWait>) = waits.iter().partition(|wait| wait.idle);
    let what = "What threads slept for, summed over threads, as recorded.";
    table::wrap(out, style, Paint::Dim, "", what, "")?;
    writeln!(out)?;
    for wait in busy.iter().take(shown) {
        row(out, wait, style)?;
    }
    if busy.is_empty() {
        writeln!(out, "Nobody waited for anything but something to do.")?;
    }
    if busy.len() > shown {
        writeln!(
            out,
            "{}: --top {} shows all.",
            plural(busy.len() - shown, "more kind of wait"),
            busy.len()
        )?;
    }
    writeln!(out)?;
    if !idle.is_empty() {
        let what = "Idle: threads that waited for anything to do, while nobody of the recording had any.";
        table::wrap(out, style, Paint::Dim, "", what, "")?;
        writeln!(out)?;
        for wait in idle.iter().take(shown) {
            row(out, wait, style)?;
        }
        writeln!(out)?;
    }
    Ok(())
}

fn row(out: &mut impl Write, wait: &RecordedWait, style: &Style) -> io::Result<()> {
    writeln!(out, "{}", style.paint(Paint::Bold, &style.fit(&wait.name, 60)))?;
    let times = if wait.waits == 1 { "once".to_owned() } else { format!("{} times", grouped(wait.waits)) };
    let threads =
        if wait.threads == 1 { "1 thread".to_owned() } else { format!("{} threads", grouped(wait.threads)) };
    let doing = |what: &str, who: &[Share]| match who {
        [] => String::new(),
        who => format!("; {what}: {}", shares(who)),
    };
    let text = format!(
        "{} in all, {times} in {threads}, the longest {}; ended by: {}{}{}",
        duration(wait.wait_ns as f64),
        duration(wait.longest_ns as f64),
        shares(&wait.ended_by),
        doing("asleep in", &wait.sleepers),
        doing("woken in", &wait.wakers)
    );
    table::wrap(out, style, Paint::Plain, "  ", &style.text(&text), "  ")
}

/// `thread 7, timer 2`
pub(super) fn shares(shares: &[Share]) -> String {
    let each: Vec<String> =
        shares.iter().map(|share| format!("{} {}", share.name, grouped(share.count))).collect();
    each.join(", ")
}
