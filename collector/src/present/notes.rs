//! What was noticed of a recording, and how much it can change the answer.

use super::style::Style;
use super::text;
use engine::report::{Finding, Report};
use std::io::{self, Write};

/// How much a finding can change the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// The answer is wrong, or there is none.
    Wrong,
    /// It may be off.
    MayBeOff,
    /// Good to know.
    Information,
}

/// By the word for it, which never changes.
pub fn severity(finding: &Finding) -> Severity {
    match finding.kind.as_str() {
        "deadlock"
        | "deadlock_in_simulation"
        | "invalid_program"
        | "invalid_operation"
        | "too_long"
        | "cut_session"
        | "damaged_session" => Severity::Wrong,
        "folded" | "probe_cost" | "inferred" | "spelled_out" | "left_running" | "recorded_again"
        | "few_samples" | "background" | "children" | "hidden" | "debugger" | "stopped" => {
            Severity::Information
        }
        _ => Severity::MayBeOff,
    }
}

/// How far the answer can be trusted, in one word, and the number of notes.
pub fn sure(report: &Report) -> &'static str {
    if report.results.iter().all(|result| result.time_ns == 0.0) {
        // Nothing was seen that an answer could stand on.
        return "not known";
    }
    match report.findings.iter().map(severity).min() {
        Some(Severity::Wrong) => "poor",
        Some(Severity::MayBeOff) => "fair",
        Some(Severity::Information) | None => "good",
    }
}

/// Everything that is to be said: what can change the answer first.
pub fn write(report: &Report, style: &Style, mut out: impl Write) -> io::Result<()> {
    let out = &mut out;
    for (of, title) in [
        (Severity::Wrong, "The answer is wrong or incomplete:"),
        (Severity::MayBeOff, "The answer may be off:"),
        (Severity::Information, "For your information:"),
    ] {
        let found = report.findings.iter().filter(|finding| severity(finding) == of);
        let found: Vec<Finding> = found.cloned().collect();
        if !found.is_empty() {
            writeln!(out, "{title}")?;
            text::findings(out, &found, style)?;
            writeln!(out)?;
        }
    }
    if report.findings.is_empty() {
        writeln!(out, "Nothing was noticed that could change the answer.\n")?;
    }
    text::closing(out, report, style)
}
