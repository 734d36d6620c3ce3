//! What finding the limit takes, compared with the report that it is based on.

use std::fmt::Write;
use std::process::Command;

use anyhow::{Context, Result};

use super::engine_example;
use super::sample::{Sample, digits};
use crate::command;
use crate::workspace::Workspace;

const RUNS: usize = 5;
const OPERATIONS: [u64; 3] = [100_000, 300_000, 1_000_000];

/// Runs all sizes in alternation.
///
/// # Errors
/// It does not compile.
pub fn measure(workspace: &Workspace) -> Result<String> {
    let tool = engine_example(workspace, "limit_bench")?;
    let mut times: [[Sample; 2]; OPERATIONS.len()] = Default::default();
    for _ in 0..RUNS {
        for (operations, [report, limit]) in OPERATIONS.iter().zip(&mut times) {
            let line = command::text(Command::new(&tool).arg(operations.to_string()))?;
            let value: serde_json::Value = serde_json::from_str(&line).context("limit_bench says no JSON")?;
            let number = |name: &str| value[name].as_f64().with_context(|| format!("no {name} in {line}"));
            report.push(number("report_ns")?);
            limit.push(number("limit_ns")?);
        }
    }
    let mut text = String::from(
        "## What limits\n\nA generated program on 16 threads: `report` for 6 CPU counts, and besides it LIMIT, FIX and what a \
         tenth of each\nfunction is worth. Processor time on one core. Of a million operations the second may take half as \
         long as the first.\n\n\
         | operations | report, ms | limit, ms | limit ÷ report |\n|---|---|---|---|\n",
    );
    for (operations, [report, limit]) in OPERATIONS.iter().zip(&times) {
        let share = digits(limit.median() / report.median());
        writeln!(text, "| {operations} | {} | {} | {share} |", report.scaled(1e-6), limit.scaled(1e-6))?;
    }
    Ok(text.trim_end().to_owned())
}
