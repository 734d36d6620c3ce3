//! Measures the weights of all segments of a generated program, compared with the paper's method of finding them.

use std::fmt::Write;
use std::process::Command;

use anyhow::Result;

use super::sample::digits;
use super::{Figures, engine_example};
use crate::workspace::Workspace;

const RUNS: usize = 5;
const OPERATIONS: u64 = 10_000_000;
/// Number of operations for the brute-force method, whose time grows with the square of that number: ten million would
/// take years.
const SMALL: u64 = 2_000;

/// Runs both sizes in alternation, then the brute-force method.
///
/// # Errors
///
/// The program does not compile, or the analysis finds something wrong with the generated program.
pub fn measure(workspace: &Workspace) -> Result<String> {
    let tool = engine_example(workspace, "weights_bench")?;
    let once = |to: &mut Figures, way: &str, operations: u64, times: u32| {
        let mut call = Command::new(&tool);
        // The C library's allocator keeps freed memory.
        if way == "warm" {
            call.env("GLIBC_TUNABLES", "glibc.malloc.mmap_max=0:glibc.malloc.trim_threshold=17179869184");
        }
        to.add(call.args([way, &operations.to_string(), &times.to_string()]))
    };
    let [mut one, mut two, mut warm_one, mut warm_two, mut small, mut brute]: [Figures; 6] =
        Default::default();
    for _ in 0..RUNS {
        once(&mut one, "sweep", OPERATIONS, 1)?;
        once(&mut two, "sweep", 2 * OPERATIONS, 1)?;
        once(&mut warm_one, "warm", OPERATIONS, 1)?;
        once(&mut warm_two, "warm", 2 * OPERATIONS, 1)?;
    }
    for _ in 0..RUNS {
        // The clock of processor time is coarse, so a small program runs many times.
        once(&mut small, "sweep", SMALL, 5_000)?;
        once(&mut brute, "oracle", SMALL, 3)?;
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
        let operations = way.of("operations")?.median();
        let rate = digits(operations / way.of("cpu_ns")?.median() * 1e3);
        let (cpu, wall) = (way.of("cpu_ns")?.scaled(1e-6), way.of("wall_ns")?.scaled(1e-6));
        writeln!(text, "| {name} | {operations} | {cpu} | {wall} | {rate} |")?;
    }
    let ratio = |what: &str, of: &Figures, to: &Figures| {
        anyhow::Ok(digits(of.of(what)?.median() / to.of(what)?.median()))
    };
    write!(
        text,
        "\n{} times the operations take {} times as long, and {} times with the memory there: the rest is the kernel's, \
         which\nhands out and clears fresh pages. On {} operations brute force takes {} times as long as the sweep.",
        ratio("operations", &two, &one)?,
        ratio("cpu_ns", &two, &one)?,
        ratio("cpu_ns", &warm_two, &warm_one)?,
        brute.of("operations")?.median(),
        ratio("cpu_ns", &brute, &small)?
    )?;
    Ok(text)
}
