//! Measures the cost of finding the limit, compared with the report on which it is based.

use std::fmt::Write;
use std::process::Command;

use anyhow::Result;

use super::sample::digits;
use super::{Figures, engine_example};
use crate::workspace::Workspace;

const RUNS: usize = 5;
const OPERATIONS: [u64; 3] = [100_000, 300_000, 1_000_000];

/// Runs all sizes in alternation.
///
/// # Errors
/// It does not compile.
pub fn measure(workspace: &Workspace) -> Result<String> {
    let tool = engine_example(workspace, "limit_bench")?;
    let mut sizes = OPERATIONS.map(|_| Figures::default());
    for _ in 0..RUNS {
        for (operations, size) in OPERATIONS.iter().zip(&mut sizes) {
            size.add(Command::new(&tool).arg(operations.to_string()))?;
        }
    }
    let mut text = String::from(
        "## What limits\n\nA generated program on 16 threads: `report` for 6 CPU counts, and besides it LIMIT, FIX and what a \
         tenth of each\nfunction is worth. Processor time on one core. Of a million operations the second may take half as \
         long as the first.\n\n\
         | operations | report, ms | limit, ms | limit ÷ report | runs |\n|---|---|---|---|---|\n",
    );
    for (operations, size) in OPERATIONS.iter().zip(&sizes) {
        let (report, limit) = (size.of("report_ns")?, size.of("limit_ns")?);
        let share = digits(limit.median() / report.median());
        let runs = size.of("runs")?.median();
        writeln!(
            text,
            "| {operations} | {} | {} | {share} | {runs} |",
            report.scaled(1e-6),
            limit.scaled(1e-6)
        )?;
    }
    Ok(text.trim_end().to_owned())
}
