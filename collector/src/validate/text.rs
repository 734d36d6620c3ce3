//! A validation as a table and as JSON.

use super::{Comparison, Row, Validation};
use crate::cell::duration;
use crate::present::json::finding::Findings;
use crate::present::style::{Paint, Style};
use crate::present::table::wrap;
use crate::present::words::finding;
use serde_json::{Value, json};
use std::io::{self, Write};

/// Writes a table. Errors above `max_error` are highlighted.
pub fn text(
    validation: &Validation,
    max_error: Option<f64>,
    style: &Style,
    out: &mut impl Write,
) -> io::Result<()> {
    let runs = validation.runs;
    let on = validation.recorded_on;
    let comparison = &validation.comparison;
    let sentence = match comparison.rows.last() {
        Some(last) if comparison.rows.len() > 1 => format!(
            "On {} CPUs {} is {} as fast as on one{}; predicted from {} on {on} {}: {}. Error {} in the middle, {} at worst.",
            last.cpus,
            validation.command,
            times(last.measured_speedup),
            match last.measured_range.map(times) {
                [low, high] if low == high => String::new(),
                [low, high] => format!(" ({low} to {high} in single rounds)"),
            },
            match validation.recordings {
                1 => "a recording".to_owned(),
                several => format!("{several} recordings"),
            },
            if on == 1 { "CPU" } else { "CPUs" },
            predicted(last),
            percent(comparison.median_error),
            percent(comparison.worst_error),
        ),
        _ => format!("{} was measured on only one CPU: there is no speed-up to compare.", validation.command),
    };
    wrap(out, style, Paint::Bold, "", &style.text(&sentence), "")?;
    writeln!(out)?;
    let head =
        ["CPUs", "time", "shortest - longest", "speed-up", "predicted", "error", "CPU time", "simulation"];
    table_line(out, style, Paint::Dim, &head.map(str::to_owned))?;
    for row in &comparison.rows {
        let paint =
            if max_error.is_some_and(|most| row.error > most) { Paint::Warning } else { Paint::Plain };
        table_line(out, style, paint, &cells(row))?;
    }
    writeln!(out)?;
    let note = format!(
        "Middle of {runs} runs each, in alternation, without longpole{}. Error: |measured - predicted| / measured, of the speed-ups. CPU time: how much more the same work takes than on one CPU (caches, memory, hardware threads: not in a recording on one CPU). Simulation: the error that remains with that CPU time in the prediction.",
        if validation.recordings > 1 { "; predicted: the middle of the recordings" } else { "" }
    );
    wrap(out, style, Paint::Dim, "", &note, "")?;
    for found in &validation.findings {
        wrap(out, style, Paint::Warning, "! ", &style.text(&finding::sentence(found)), "  ")?;
    }
    Ok(())
}

fn cells(row: &Row) -> [String; 8] {
    [
        row.cpus.to_string(),
        duration(row.measured_ns[0]),
        format!("{} - {}", duration(row.measured_ns[1]), duration(row.measured_ns[2])),
        times(row.measured_speedup),
        times(row.predicted_speedup),
        percent(row.error),
        times(row.inflation),
        percent(row.scheduling_error),
    ]
}

fn table_line(out: &mut impl Write, style: &Style, paint: Paint, cells: &[String; 8]) -> io::Result<()> {
    const WIDTHS: [usize; 8] = [4, 9, 20, 9, 10, 8, 9, 11];
    let mut line = String::new();
    for (cell, columns) in cells.iter().zip(WIDTHS) {
        let cell = style.text(cell);
        let spaces = columns.saturating_sub(cell.chars().count()).max(usize::from(!line.is_empty()));
        line.extend(std::iter::repeat_n(' ', spaces));
        line.push_str(&cell);
    }
    writeln!(out, "{}", style.paint(paint, line.trim_end()))
}

/// The predicted speed-up, with the range of the recordings if the range shows in the digits.
fn predicted(row: &Row) -> String {
    let [low, high] = row.predicted_range.map(times);
    let middle = times(row.predicted_speedup);
    if low == high { middle } else { format!("{middle} ({low} to {high})") }
}

fn times(ratio: f64) -> String {
    format!("{ratio:.2}×")
}

fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

/// Writes JSON: `longpole-validate/1`.
pub fn json(validation: &Validation, out: &mut impl Write) -> io::Result<()> {
    let document = json!({
        "schema": "longpole-validate/1",
        "command": validation.command,
        "recorded_cpus": validation.recorded_on,
        "recordings": validation.recordings,
        "runs": validation.runs,
        "results": rows(&validation.comparison),
        "median_error": validation.comparison.median_error,
        "worst_error": validation.comparison.worst_error,
        "findings": Findings(&validation.findings),
    });
    serde_json::to_writer_pretty(&mut *out, &document)?;
    writeln!(out)
}

fn rows(comparison: &Comparison) -> Vec<Value> {
    comparison
        .rows
        .iter()
        .map(|row| {
            json!({
                "cpus": row.cpus,
                "measured_ns": row.measured_ns[0],
                "measured_low_ns": row.measured_ns[1],
                "measured_high_ns": row.measured_ns[2],
                "predicted_ns": row.predicted_ns,
                "measured_speedup": row.measured_speedup,
                "measured_speedup_low": row.measured_range[0],
                "measured_speedup_high": row.measured_range[1],
                "predicted_speedup": row.predicted_speedup,
                "predicted_speedup_low": row.predicted_range[0],
                "predicted_speedup_high": row.predicted_range[1],
                "error": row.error,
                "inflation": row.inflation,
                "scheduling_error": row.scheduling_error,
            })
        })
        .collect()
}
