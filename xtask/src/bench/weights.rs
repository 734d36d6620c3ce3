//! Time to compute the weights of all segments of a generated program, compared with the method in the paper.

use anyhow::{Result, bail};

use crate::command;
use crate::measure::{Measurement, Outcome, Runs, Side};
use crate::sample::digits;

const OPERATIONS: u64 = 10_000_000;
/// Number of operations for brute force, whose time grows with their square. Ten million operations would take years.
const SMALL: u64 = 2_000;
/// Setting with which the C library's allocator keeps freed memory.
const KEEP_MEMORY: &str = "glibc.malloc.mmap_max=0:glibc.malloc.trim_threshold=17179869184";

/// The rows: label, method, operations, repetitions, and stage. The CPU time clock is coarse, so a small program runs
/// many times.
const WAYS: [(&str, &str, u64, u32, usize); 6] = [
    ("one sweep", "sweep", OPERATIONS, 1, 0),
    ("one sweep", "sweep", 2 * OPERATIONS, 1, 0),
    ("one sweep, memory there", "warm", OPERATIONS, 1, 0),
    ("one sweep, memory there", "warm", 2 * OPERATIONS, 1, 0),
    ("one sweep", "sweep", SMALL, 5_000, 1),
    ("brute force (2001, Fig. 5)", "oracle", SMALL, 3, 1),
];

pub const WEIGHTS: Measurement = Measurement {
    name: "weights",
    about: "Weights of a generated program of 10 million operations",
    title: "Weights of all segments",
    runs: Runs::Times(5),
    sides: |setting| {
        let tool = setting.engine_example("weights_bench")?;
        let side = |(label, way, operations, times, stage)| {
            let mut call = command::line(&tool, &format!("{way} {operations} {times}"));
            if way == "warm" {
                call.env("GLIBC_TUNABLES", KEEP_MEMORY);
            }
            Side::command(label, call).stage(stage)
        };
        Ok(WAYS.map(side).into())
    },
    says: "A generated program (calls, locks, a token passed on, barriers) on 32 threads; schedule and weights of \
           all segments\nfor 8 CPU counts, on one core. Processor time; the target is 5 million operations a second, \
           and twice the operations in\nat most 2.3 times the time.",
    heads: "way",
    columns: &[
        ("operations", |side, _| side.count("operations")),
        ("processor time, ms", |side, _| side.spread("cpu_ns", 1e-6)),
        ("wall time, ms", |side, _| side.spread("wall_ns", 1e-6)),
        ("million operations/s", |side, _| side.ratio("operations", "cpu_ns", 1e3)),
    ],
    ends: |results| {
        let [one, two, warm_one, warm_two, small, brute] = &results.sides[..] else { bail!("not all ways") };
        Ok(format!(
            "{} times the operations take {} times as long, and {} times with the memory there: the rest is the kernel's, \
             which\nhands out and clears fresh pages. On {} operations brute force takes {} times as long as the sweep.",
            times("operations", two, one)?,
            times("cpu_ns", two, one)?,
            times("cpu_ns", warm_two, warm_one)?,
            brute.count("operations")?,
            times("cpu_ns", brute, small)?
        ))
    },
    ..Measurement::NEW
};

fn times(what: &str, of: &Outcome, to: &Outcome) -> Result<String> {
    Ok(digits(of.median(what)? / to.median(what)?))
}
