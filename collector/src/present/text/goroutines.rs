//! What goroutines do and wait for, a part of the report by wait.

use crate::cell::width;
use crate::present::frame::clip;
use crate::present::style::{Paint, Style};
use crate::present::words::short::short;
use engine::program::GoroutineWork;
use std::io::{self, Write};

/// Width of a function's column.
const NAME: usize = 24;

/// Writes the `shown` busiest groups of goroutines of each process.
pub(super) fn write(
    out: &mut dyn Write,
    works: &[GoroutineWork],
    shown: usize,
    style: &Style,
) -> io::Result<()> {
    for work in works {
        let title = format!(
            "{:NAME$} {:>8} {:>8} {:>8} {:>8}  most wait for",
            "GOROUTINES", "number", "run", "ready", "in calls"
        );
        writeln!(out, "\n{}", style.paint(Paint::Bold, &clip(&title, style.width, style)))?;
        let mean = |count: u64| format!("{:.1}", count as f64 / work.looks.max(1) as f64);
        for group in work.groups.iter().take(shown) {
            let name = style.fit(&short(group.name()), NAME);
            let wait = group.waits.first().map_or(String::new(), |wait| {
                let others = if group.waits.len() > 1 { ", +" } else { "" };
                format!("{} {}{others}", mean(wait.count), wait.name())
            });
            let line = format!(
                "{name}{} {:>8} {:>8} {:>8} {:>8}  {wait}",
                " ".repeat(NAME.saturating_sub(width(&name))),
                mean(group.all()),
                mean(group.running),
                mean(group.runnable),
                mean(group.calls),
            );
            writeln!(out, "{}", clip(&style.text(&line), style.width, style))?;
        }
        let told = format!("Means over {} looks at Go's runtime.", work.looks);
        writeln!(out, "{}", style.paint(Paint::Dim, &told))?;
    }
    Ok(())
}
