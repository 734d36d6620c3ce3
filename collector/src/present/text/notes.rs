//! Shows all notes on a recording, and how much each can change the answer.

use super::report;
use crate::present::style::Style;
use engine::report::{Finding, Report, Severity};
use std::io::{self, Write};

/// Writes all notes; those that can change the answer come first.
pub fn write(report: &Report, style: &Style, mut out: impl Write) -> io::Result<()> {
    let out = &mut out;
    type Of = fn(Severity) -> bool;
    let parts: [(Of, &str); 3] = [
        (|of| of == Severity::Wrong, "The answer is wrong or incomplete:"),
        (|of| matches!(of, Severity::MayBeOff(_)), "The answer may be off:"),
        (|of| of == Severity::Information, "For your information:"),
    ];
    for (is, title) in parts {
        let found = report.findings.iter().filter(|finding| is(finding.severity()));
        let found: Vec<Finding> = found.cloned().collect();
        if !found.is_empty() {
            writeln!(out, "{title}")?;
            report::findings(out, &found, style)?;
            writeln!(out)?;
        }
    }
    if report.findings.is_empty() {
        writeln!(out, "No notes: longpole noticed nothing that could change the answer.\n")?;
    }
    report::closing(out, report, style)
}
