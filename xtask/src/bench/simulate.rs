//! A generated program on a number of simulated processors.

use std::fmt::Write;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};

use super::engine_example;
use super::sample::{Sample, digits};
use crate::command;
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
    let mut ways: Vec<Way> = rows.iter().map(|_| Way::default()).collect();
    for _ in 0..RUNS {
        for (way, (_, kind, cpus)) in ways.iter_mut().zip(rows) {
            way.once(&tool, kind, cpus)?;
        }
    }
    let mut text = String::from(
        "## Simulating processors\n\nA generated program (calls, locks, a token passed on, barriers) on 64 threads, simulated on one core. \
         Processor time. The\ntargets are 5 million operations a second and at most 40 bytes of memory for each operation, the program \
         itself (16)\nincluded.\n\n\
         | machine | CPUs | operations | processor time, ms | million operations/s | bytes per operation |\n|---|---|---|---|---|---|\n",
    );
    for (way, (name, _, cpus)) in ways.iter().zip(rows) {
        let rate = way.operations / way.cpu_ns.median() * 1e3;
        let bytes = way.peak_bytes.median() / way.operations;
        let cpu = way.cpu_ns.scaled(1e-6);
        writeln!(
            text,
            "| {name} | {cpus} | {} | {cpu} | {} | {} |",
            way.operations,
            digits(rate),
            digits(bytes)
        )?;
    }
    Ok(text)
}

#[derive(Default)]
struct Way {
    operations: f64,
    cpu_ns: Sample,
    peak_bytes: Sample,
}

impl Way {
    fn once(&mut self, tool: &Path, kind: &str, cpus: u32) -> Result<()> {
        let arguments = [kind.to_owned(), OPERATIONS.to_string(), cpus.to_string()];
        let line = command::text(Command::new(tool).args(arguments))?;
        let value: serde_json::Value = serde_json::from_str(&line).context("simulate_bench says no JSON")?;
        let number = |name: &str| value[name].as_f64().with_context(|| format!("no {name} in {line}"));
        self.operations = number("operations")?;
        self.cpu_ns.push(number("cpu_ns")?);
        self.peak_bytes.push(number("peak_bytes")?);
        Ok(())
    }
}
