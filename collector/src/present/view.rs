//! The report by lock, wait, source line, file or binary, between the same limit and notes as other commands.

use super::frame::Frame;
use super::style::Style;
use super::text::{By, FUNCTIONS, Options};
use super::{lines, locks, screen, waits};
use engine::report::{CpuResult, Cpus, Report};
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
    if let Some(result) = main_result(report, frame) {
        match options.by {
            By::Lock => locks::write(out, report, &frame.limits, result, (shown, options.all), style)?,
            By::Wait => waits::write(out, report, shown, style)?,
            By::Thread => screen::by_thread(out, &frame.limits, shown, style)?,
            by => lines::write(out, report, &frame.limits, result, by, shown, style)?,
        }
        writeln!(out)?;
    }
    frame.foot(&report.findings, Some("what-if --rank"), style, out)
}

/// The result that the rows are about: on the recorded machine, else on the largest finite CPU count.
fn main_result<'r>(report: &'r Report, frame: &Frame) -> Option<&'r CpuResult> {
    let cpus = frame.limits.at.first().map(|limit| limit.cpus);
    let found = report.results.iter().find(|result| Some(result.cpus) == cpus);
    let finite = report.results.iter().filter(|result| result.cpus != Cpus::Infinite);
    found.or_else(|| finite.max_by_key(|result| result.cpus)).or_else(|| report.results.first())
}
