//! The report by lock, wait, source line, file or binary, between the same limit and notes as other commands.

use super::report::{By, FUNCTIONS, Options};
use super::{lines, locks, waits};
use crate::present::frame::Frame;
use crate::present::screen;
use crate::present::style::Style;
use engine::report::Report;
use std::io::{self, Write};

/// Writes the report.
pub fn write(
    report: &Report,
    frame: &Frame,
    options: Options,
    style: &Style,
    out: &mut dyn Write,
) -> io::Result<()> {
    frame.head(style, out)?;
    let unbounded = options.all && options.top.is_none() && matches!(options.by, By::Lock | By::Thread);
    let shown = if unbounded { usize::MAX } else { options.top.unwrap_or(FUNCTIONS) };
    if let Some(result) = screen::main_result(report, &frame.limits) {
        match options.by {
            By::Lock => locks::write(out, report, &frame.limits, result, (shown, options.all), style)?,
            By::Wait => {
                let shown = waits::Shown { rows: shown, with_stacks: options.stacks };
                waits::write(out, report, shown, style)?
            }
            By::Thread => screen::by_thread(out, &frame.limits, shown, style)?,
            by => lines::write(out, report, &frame.limits, result, by, shown, style)?,
        }
        writeln!(out)?;
    }
    frame.foot(&report.findings, Some("what-if --rank"), style, out)
}
