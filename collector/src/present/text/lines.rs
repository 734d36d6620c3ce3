//! The report by source line, file or binary: shares on the recorded machine, and the source text where the file exists.

use super::report::By;
use crate::cell::{whole_percent, width};
use crate::cpu_words::on;
use crate::present::frame::{clip, more};
use crate::present::source::Sources;
use crate::present::style::{Paint, Style};
use engine::limit::Limits;
use engine::report::{CpuResult, Cpus, FunctionRow, Report};
use std::io::{self, Write};

/// Smaller shares have no row.
const LEAST: f64 = 0.01;
/// Width of a name's column.
const NAME: usize = 28;

/// Writes the first `shown` rows, with shares for `result` and for the largest CPU count of the limits.
pub(in crate::present) fn write(
    out: &mut dyn Write,
    report: &Report,
    limits: &Limits,
    result: &CpuResult,
    by: By,
    shown: usize,
    style: &Style,
) -> io::Result<()> {
    let largest = limits.at.get(1).map(|limit| limit.cpus);
    let largest = report.results.iter().find(|other| Some(other.cpus) == largest);
    let mut rows: Vec<&FunctionRow> = result.functions.iter().collect();
    rows.sort_by(|a, b| b.tet_ns.total_cmp(&a.tet_ns).then_with(|| a.function.cmp(&b.function)));
    let worth = |row: &&FunctionRow| {
        let error = row.tet_error_ns.unwrap_or(0.0);
        row.tet_ns > error && result.share(row.tet_ns) >= LEAST
    };
    let all = rows.len();
    rows.retain(worth);
    if rows.is_empty() {
        let text = if all == 0 {
            "No thread computed anything."
        } else {
            "Too few samples to tell any apart: record for longer, or while it works."
        };
        return writeln!(out, "{}", clip(text, style.width, style));
    }
    let title = match by {
        By::File => "FILES",
        By::Module => "BINARIES",
        _ => "LINES",
    };
    let on = largest.map_or(String::new(), |largest| on(largest.cpus));
    let columns = if style.width < 60 { 14 } else { NAME };
    let source = if by == By::Line { "  source" } else { "" };
    let title = format!("{title:columns$} {:>10} {:>10} {on:>11}{source}", "itself", "with calls");
    writeln!(out, "{}", style.paint(Paint::Bold, &clip(&title, style.width, style)))?;
    let plus_minus = if style.unicode { "±" } else { "~" };
    let cell = |ns: f64, error: Option<f64>, columns: usize| {
        let percent = result.share(ns) * 100.0;
        let text = match result.share(error.unwrap_or(0.0)) * 100.0 {
            error if error >= 0.5 => format!("{percent:.0} {plus_minus}{error:.0} %"),
            _ => format!("{percent:.0} %"),
        };
        format!("{}{text}", " ".repeat(columns.saturating_sub(width(&text))))
    };
    let mut sources = Sources::default();
    for row in rows.iter().take(shown) {
        let name = last_parts(&row.function);
        let name = style.fit(name, columns);
        let there = largest.and_then(|largest| {
            let other = largest.functions.iter().find(|other| other.function == row.function)?;
            Some(whole_percent(largest.share(other.tet_ns)))
        });
        let mut line = format!(
            "{}{} {} {} {:>11}",
            style.link(&name, row.function.rsplit_once(':').filter(|_| by == By::Line)),
            " ".repeat(columns.saturating_sub(width(&name))),
            cell(row.tet_ns, row.tet_error_ns, 10),
            cell(row.tetid_ns, row.tetid_error_ns, 10),
            there.unwrap_or_default()
        );
        // Counts columns on the screen: a link's address takes none.
        let used = columns + 34;
        let source = if by == By::Line { sources.line(&row.function) } else { None };
        if let Some(text) = source {
            let room = style.width.saturating_sub(used + 2);
            if room >= 12 {
                line.push_str("  ");
                line.push_str(&clip(&style.text(&text), room, style));
            }
        }
        writeln!(out, "{}", line.trim_end())?;
    }
    let rest = all - rows.len().min(shown);
    foot(out, rest, by, result.cpus, style)
}

/// Writes how many rows are not shown, and what the shares refer to.
fn foot(out: &mut dyn Write, rest: usize, by: By, cpus: Cpus, style: &Style) -> io::Result<()> {
    let what = match by {
        By::File => "file",
        By::Module => "row",
        _ => "line",
    };
    more(out, rest, what, "--wide shows all", style)?;
    let note = format!("Shares of the critical path {}.", on(cpus));
    writeln!(out, "{}", style.paint(Paint::Dim, &clip(&note, style.width, style)))
}

/// The last two parts of a path: `src/a.c:3` of `/home/u/p/src/a.c:3`.
fn last_parts(path: &str) -> &str {
    let cut = path.rmatch_indices('/').nth(1).map_or(0, |(at, _)| at + 1);
    path.get(cut..).unwrap_or(path)
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_path_is_shortened_to_its_last_two_parts() {
        let last = super::last_parts;
        assert_eq!(
            [last("/home/u/src/a.c:3"), last("a.c:3"), last("[libz.so]")],
            ["src/a.c:3", "a.c:3", "[libz.so]"]
        );
    }
}
