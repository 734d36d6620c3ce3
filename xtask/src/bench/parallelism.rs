//! Cost of `longpole parallelism`, which says what makes a run less parallel, on generated timelines.

use crate::measure::{Measurement, Runs, Side};

/// Numbers of intervals and threads.
const SIZES: [(u64, u64); 5] =
    [(1_000_000, 4), (4_000_000, 4), (4_000_000, 16), (4_000_000, 64), (4_000_000, 1_000)];

pub const PARALLELISM: Measurement = Measurement {
    name: "parallelism",
    about: "Where the parallelism of a generated run of four million intervals goes",
    title: "Where the parallelism goes",
    runs: Runs::Times(5),
    sides: |setting| {
        let tool = setting.engine_example("parallelism_bench")?;
        let side = |(intervals, threads)| {
            Side::program(format!("{intervals} | {threads}"), &tool, &format!("{intervals} {threads}"))
        };
        Ok(SIZES.map(side).into())
    },
    says: "Threads of a generated timeline run, sleep and wait for CPUs in turns; `longpole parallelism`'s one pass \
           over it, on one core.\nProcessor time; the target is 10 million intervals a second, in memory that does \
           not grow with them.",
    heads: "intervals | threads",
    columns: &[
        ("processor time, ms", |side, _| side.spread("cpu_ns", 1e-6)),
        ("million intervals/s", |side, _| side.ratio("intervals", "cpu_ns", 1e3)),
        ("memory besides the timeline, MB", |side, _| side.spread("memory_bytes", 1e-6)),
    ],
    ..Measurement::NEW
};
