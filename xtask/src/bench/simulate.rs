//! A generated program on a number of simulated processors.

use std::fmt::Write;
use std::process::Command;

use anyhow::Result;

use super::sample::digits;
use super::{Figures, engine_example};
use crate::workspace::Workspace;

const RUNS: usize = 5;
const OPERATIONS: u64 = 10_000_000;

/// Runs all machines in alternation.
///
/// # Errors
/// It does not compile, or the simulation finds something wrong with the generated program.
pub fn measure(workspace: &Workspace) -> Result<String> {
    let tool = engine_example(workspace, "simulate_bench")?;
    let rows = [
        ("EEVDF", "eevdf", 1),
        ("EEVDF", "eevdf", 16),
        ("EEVDF", "eevdf", 64),
        ("ideal sharing", "ideal", 16),
    ];
    let mut ways = rows.map(|_| Figures::default());
    for _ in 0..RUNS {
        for (way, (_, kind, cpus)) in ways.iter_mut().zip(rows) {
            way.add(Command::new(&tool).arg(kind).args([OPERATIONS.to_string(), cpus.to_string()]))?;
        }
    }
    let mut text = String::from(
        "## Simulating processors\n\nA generated program (calls, locks, a token passed on, barriers) on 64 threads, simulated on one core. \
         Processor time. The\ntargets are 5 million operations a second and at most 40 bytes of memory for each operation, the program \
         itself (16)\nincluded.\n\n\
         | machine | CPUs | operations | processor time, ms | million operations/s | bytes per operation |\n|---|---|---|---|---|---|\n",
    );
    for (way, (name, _, cpus)) in ways.iter().zip(rows) {
        let (operations, cpu_ns) = (way.of("operations")?.median(), way.of("cpu_ns")?);
        let rate = digits(operations / cpu_ns.median() * 1e3);
        let bytes = digits(way.of("peak_bytes")?.median() / operations);
        let cpu = cpu_ns.scaled(1e-6);
        writeln!(text, "| {name} | {cpus} | {operations} | {cpu} | {rate} | {bytes} |")?;
    }
    Ok(text)
}
