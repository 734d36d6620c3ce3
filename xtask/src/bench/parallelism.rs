//! `longpole parallelism`'s account of where a run's parallelism goes, on generated timelines.

use std::fmt::Write;
use std::process::Command;

use anyhow::Result;

use super::sample::digits;
use super::{Figures, engine_example};
use crate::workspace::Workspace;

const RUNS: usize = 5;
/// Numbers of intervals and threads.
const SIZES: [(u64, u64); 5] =
    [(1_000_000, 4), (4_000_000, 4), (4_000_000, 16), (4_000_000, 64), (4_000_000, 1_000)];

/// Runs all sizes in alternation.
///
/// # Errors
/// It does not compile, or the account does not add up.
pub fn measure(workspace: &Workspace) -> Result<String> {
    let tool = engine_example(workspace, "parallelism_bench")?;
    let mut rows = SIZES.map(|_| Figures::default());
    for _ in 0..RUNS {
        for ((intervals, threads), row) in SIZES.iter().zip(&mut rows) {
            row.add(Command::new(&tool).args([intervals.to_string(), threads.to_string()]))?;
        }
    }
    let mut text = String::from(
        "## Where the parallelism goes\n\nThreads of a generated timeline run, sleep and wait for CPUs in turns; \
         `longpole parallelism`'s one pass over it, on one core.\nProcessor time; the target is 10 million intervals a \
         second, in memory that does not grow with them.\n\n\
         | intervals | threads | processor time, ms | million intervals/s | memory besides the timeline, MB |\n\
         |---|---|---|---|---|\n",
    );
    for ((_, threads), row) in SIZES.iter().zip(&rows) {
        let (count, cpu_ns) = (row.of("intervals")?.median(), row.of("cpu_ns")?);
        let (rate, cpu) = (digits(count / cpu_ns.median() * 1e3), cpu_ns.scaled(1e-6));
        let memory = row.of("memory_bytes")?.scaled(1e-6);
        writeln!(text, "| {count} | {threads} | {cpu} | {rate} | {memory} |")?;
    }
    Ok(text)
}
