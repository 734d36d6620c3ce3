//! The account of where a run's parallelism goes, on generated timelines.

use std::fmt::Write;
use std::process::Command;

use anyhow::{Context, Result};

use super::engine_example;
use super::sample::{Sample, digits};
use crate::command;
use crate::workspace::Workspace;

const RUNS: usize = 5;
/// Intervals, threads.
const SIZES: [(u64, u64); 5] =
    [(1_000_000, 4), (4_000_000, 4), (4_000_000, 16), (4_000_000, 64), (4_000_000, 1_000)];

/// Runs all sizes in alternation.
///
/// # Errors
/// It does not compile, or the account does not add up.
pub fn measure(workspace: &Workspace) -> Result<String> {
    let tool = engine_example(workspace, "parallelism_bench")?;
    let mut rows: Vec<(f64, Sample, Sample)> =
        SIZES.map(|_| (0.0, Sample::default(), Sample::default())).into();
    for _ in 0..RUNS {
        for ((intervals, threads), (count, cpu_ns, memory)) in SIZES.iter().zip(&mut rows) {
            let line = command::text(Command::new(&tool).args([intervals.to_string(), threads.to_string()]))?;
            let value: serde_json::Value =
                serde_json::from_str(&line).context("parallelism_bench says no JSON")?;
            let number = |name: &str| value[name].as_f64().with_context(|| format!("no {name} in {line}"));
            *count = number("intervals")?;
            cpu_ns.push(number("cpu_ns")?);
            memory.push(number("memory_bytes")?);
        }
    }
    let mut text = String::from(
        "## Where the parallelism goes\n\nThreads of a generated timeline run, sleep and wait for CPUs in turns; \
         `longpole parallelism`'s one pass over it, on one core.\nProcessor time; the target is 10 million intervals a \
         second, in memory that does not grow with them.\n\n\
         | intervals | threads | processor time, ms | million intervals/s | memory besides the timeline, MB |\n\
         |---|---|---|---|---|\n",
    );
    for ((_, threads), (count, cpu_ns, memory)) in SIZES.iter().zip(&rows) {
        let rate = count / cpu_ns.median() * 1e3;
        writeln!(
            text,
            "| {count} | {threads} | {} | {} | {} |",
            cpu_ns.scaled(1e-6),
            digits(rate),
            memory.scaled(1e-6)
        )?;
    }
    Ok(text)
}
