//! Weights of all segments of a generated program, compared with the paper's way of finding them.

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
/// Brute force takes the square of this: ten million would take years.
const SMALL: u64 = 2_000;

/// Runs both sizes in alternation, then brute force.
///
/// # Errors
/// It does not compile, or the analysis finds something wrong with the generated program.
pub fn measure(workspace: &Workspace) -> Result<String> {
    let tool = engine_example(workspace, "weights_bench")?;
    let (mut one, mut two) = (Way::default(), Way::default());
    let (mut warm_one, mut warm_two) = (Way::default(), Way::default());
    for _ in 0..RUNS {
        one.once(&tool, "sweep", OPERATIONS, 1)?;
        two.once(&tool, "sweep", 2 * OPERATIONS, 1)?;
        warm_one.once(&tool, "warm", OPERATIONS, 1)?;
        warm_two.once(&tool, "warm", 2 * OPERATIONS, 1)?;
    }
    let (mut small, mut brute) = (Way::default(), Way::default());
    for _ in 0..RUNS {
        // The clock of processor time is coarse: a small program many times over.
        small.once(&tool, "sweep", SMALL, 5_000)?;
        brute.once(&tool, "oracle", SMALL, 3)?;
    }
    let mut text = String::from(
        "## Weights of all segments\n\nA generated program (calls, locks, a token passed on, barriers) on 32 threads; \
         schedule and weights of all segments\nfor 8 CPU counts, on one core. Processor time; the target is 5 million \
         operations a second, and twice the operations in\nat most 2.3 times the time.\n\n\
         | way | operations | processor time, ms | wall time, ms | million operations/s |\n|---|---|---|---|---|\n",
    );
    for (name, way) in [
        ("one sweep", &one),
        ("one sweep", &two),
        ("one sweep, memory there", &warm_one),
        ("one sweep, memory there", &warm_two),
        ("one sweep", &small),
        ("brute force (2001, Fig. 5)", &brute),
    ] {
        let rate = way.operations / way.cpu_ns.median() * 1e3;
        let (cpu, wall) = (way.cpu_ns.scaled(1e-6), way.wall_ns.scaled(1e-6));
        writeln!(text, "| {name} | {} | {cpu} | {wall} | {} |", way.operations, digits(rate))?;
    }
    let growth = two.cpu_ns.median() / one.cpu_ns.median();
    let warm_growth = warm_two.cpu_ns.median() / warm_one.cpu_ns.median();
    let size = two.operations / one.operations;
    let saved = brute.cpu_ns.median() / small.cpu_ns.median();
    write!(
        text,
        "\n{} times the operations take {} times as long, and {} times with the memory there: the rest is the kernel's, \
         which\nhands out and clears fresh pages. On {} operations brute force takes {} times as long as the sweep.",
        digits(size),
        digits(growth),
        digits(warm_growth),
        brute.operations,
        digits(saved)
    )?;
    Ok(text)
}

#[derive(Default)]
struct Way {
    operations: f64,
    cpu_ns: Sample,
    wall_ns: Sample,
}

impl Way {
    fn once(&mut self, tool: &Path, way: &str, operations: u64, times: u32) -> Result<()> {
        let mut call = Command::new(tool);
        // The C library's allocator keeps what is freed.
        if way == "warm" {
            call.env("GLIBC_TUNABLES", "glibc.malloc.mmap_max=0:glibc.malloc.trim_threshold=17179869184");
        }
        let line = command::text(call.args([way, &operations.to_string(), &times.to_string()]))?;
        let value: serde_json::Value = serde_json::from_str(&line).context("weights_bench says no JSON")?;
        let number = |name: &str| value[name].as_f64().with_context(|| format!("no {name} in {line}"));
        self.operations = number("operations")?;
        self.cpu_ns.push(number("cpu_ns")?);
        self.wall_ns.push(number("wall_ns")?);
        Ok(())
    }
}
