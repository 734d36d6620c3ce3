//! The parts around the table of every command: the limit above the table; below it how far the answer can be trusted,
//! and the next command. The words are the same for all commands.

use super::screen::limit;
use super::style::{Paint, Style};
use super::table;
use super::words::finding::sentence;
use crate::cell::{ending, width};
use engine::limit::{Limit, Limits};
use engine::report::{Finding, Severity};
use serde::Serialize;
use std::io::{self, Write};

/// Largest number of notes shown; `longpole notes` shows all.
const NOTES: usize = 2;
/// Largest number of lines for a note that does not make the answer wrong.
const LINES: usize = 2;

/// Facts about a recording that do not depend on the command.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Frame {
    /// What limits the program; empty if that was not computed.
    pub limits: Limits,
    /// Findings that speak against the prediction.
    pub doubts: Vec<Finding>,
    /// The file, as the user gave it; empty for the newest one.
    pub file: String,
}

impl Frame {
    /// Writes LIMIT, FIX if changes were tried, and an empty line.
    pub fn head(&self, style: &Style, out: &mut dyn Write) -> io::Result<()> {
        if self.limits.at.is_empty() {
            return Ok(());
        }
        let mut out = out;
        limit::write(&mut out, None, &self.limits, self.limits.fixes.len(), style)?;
        writeln!(out)
    }

    /// Writes what can change the answer, how sure the answer is, and the next command, e.g. `what-if --rank`.
    pub fn foot(
        &self,
        findings: &[Finding],
        next: Option<&str>,
        style: &Style,
        out: &mut dyn Write,
    ) -> io::Result<()> {
        let is_known = computes(&self.limits);
        let next = next.filter(|_| is_known).map(|words| command(words, &self.file, style));
        self.foot_with(findings, &next.unwrap_or_default(), style, out)
    }

    /// Like [`Frame::foot`], but `next` is the complete next command; empty if there is none.
    pub fn foot_with(
        &self,
        findings: &[Finding],
        next: &str,
        style: &Style,
        out: &mut dyn Write,
    ) -> io::Result<()> {
        // A finding about what a command does with samples is no note about the recording: `longpole notes` lacks it, too.
        let mut findings = [&self.doubts, findings].concat();
        findings.retain(|finding| !matches!(finding, Finding::SpelledOut { .. }));
        let notes = command("notes", &self.file, style);
        closing(&findings, computes(&self.limits), &notes, next, style, out)
    }
}

/// How far an answer can be trusted, as texts.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Trust {
    /// How sure the answer is, in one or two words.
    pub(crate) sure: &'static str,
    /// What can change the answer; the most serious first.
    pub(crate) doubts: Vec<String>,
    /// Number of notes.
    pub(crate) notes: usize,
}

impl Trust {
    /// The trust in the answer that consists of these limits.
    pub(crate) fn of(limits: &Limits, findings: &[Finding]) -> Trust {
        let doubts = weighty(findings).map(sentence).collect();
        Trust { sure: sure(findings, computes(limits)), doubts, notes: findings.len() }
    }
}

/// Whether the recording contains enough for an answer.
fn computes(limits: &Limits) -> bool {
    let is_known = |limit: &Limit| limit.time_ns > 0.0 && limit.kind.is_known();
    limits.at.first().is_some_and(is_known)
}

/// The findings that can change the answer and matter most. Findings that make the answer wrong come first.
pub(super) fn weighty(findings: &[Finding]) -> impl Iterator<Item = &Finding> {
    let mut weighty: Vec<&Finding> =
        findings.iter().filter(|finding| finding.severity() != Severity::Information).collect();
    weighty.sort_by_key(|finding| matches!(finding.severity(), Severity::MayBeOff(_)));
    weighty.into_iter().take(NOTES)
}

/// A command about this file; the newest file needs no name.
pub(super) fn command(words: &str, file: &str, style: &Style) -> String {
    format!("longpole {words} {}", style.text(file)).trim_end().to_owned()
}

/// Writes what can change the answer, how sure the answer is, and the next command, which may be empty. `shown_by` is
/// the command that shows all notes.
pub(super) fn closing(
    findings: &[Finding],
    computes: bool,
    shown_by: &str,
    next: &str,
    style: &Style,
    out: &mut dyn Write,
) -> io::Result<()> {
    doubts(findings, style, out)?;
    let mut out = out;
    let next = if next.is_empty() { String::new() } else { format!("Next: {next}") };
    let sure = format!("Sure: {}.", trust(findings, computes, shown_by));
    if width(&sure) + 3 + width(&next) <= style.width {
        return writeln!(out, "{}", format!("{sure}   {next}").trim_end());
    }
    table::wrap(&mut out, style, Paint::Plain, "", &sure, "  ")?;
    if next.is_empty() { Ok(()) } else { table::wrap(&mut out, style, Paint::Plain, "", &next, "  ") }
}

/// How sure the answer is, the number of notes, and the command that shows them.
pub(super) fn trust(findings: &[Finding], computes: bool, shown_by: &str) -> String {
    let notes = match findings.len() {
        0 => String::new(),
        1 => format!(", 1 note ({shown_by})"),
        count => format!(", {count} notes ({shown_by})"),
    };
    format!("{}{notes}", sure(findings, computes))
}

/// Writes what can change the answer, in a few lines.
pub(super) fn doubts(findings: &[Finding], style: &Style, out: &mut dyn Write) -> io::Result<()> {
    let mut out = out;
    for finding in weighty(findings) {
        let mut text = style.text(&format!("! {}", sentence(finding)));
        let room = LINES * style.width.saturating_sub(2);
        // A finding that makes the answer wrong is shown in full.
        if finding.severity() != Severity::Wrong && width(&text) > room {
            text = clip(&text, room.saturating_sub(16), style);
        }
        table::wrap(&mut out, style, Paint::Warning, "", &text, "  ")?;
    }
    Ok(())
}

/// How far the answer can be trusted, in one or two words.
pub(super) fn sure(findings: &[Finding], computes: bool) -> &'static str {
    if !computes {
        // Without an answer there is nothing to trust.
        return "not known";
    }
    match findings.iter().map(Finding::severity).min() {
        Some(Severity::Wrong) => "poor",
        Some(Severity::MayBeOff(_)) => "fair",
        Some(Severity::Information) | None => "good",
    }
}

/// A line of at most `columns`: a longer one is cut off at its end.
pub(crate) fn clip(line: &str, columns: usize, style: &Style) -> String {
    let line = line.trim_end();
    if width(line) <= columns {
        return line.to_owned();
    }
    let mut clipped = String::new();
    let mut used = 1;
    for c in line.chars() {
        used += width(c.encode_utf8(&mut [0; 4]));
        if used > columns {
            break;
        }
        clipped.push(c);
    }
    format!("{}{}", clipped.trim_end(), if style.unicode { '…' } else { '~' })
}

/// Says how to see the rows that are not shown, if there are any: `3 more functions: --top 12 shows all`.
pub(super) fn more(out: &mut dyn Write, rest: usize, what: &str, how: &str, style: &Style) -> io::Result<()> {
    if rest == 0 {
        return Ok(());
    }
    // Only the noun gets a plural ending, as in `functions with less`.
    let (noun, of) = what.split_at(what.find(' ').unwrap_or(what.len()));
    let text = format!("({rest} more {noun}{}{of}: {how})", ending(noun, rest));
    let mut out = out;
    table::wrap(&mut out, style, Paint::Dim, "", &text, " ")
}
