//! Time to simulate a generated program on several numbers of CPUs.

use crate::measure::{Measurement, Runs, Side};

const OPERATIONS: u64 = 10_000_000;
/// Kinds of machines and their numbers of CPUs.
const MACHINES: [(&str, &str, u32); 4] =
    [("EEVDF", "eevdf", 1), ("EEVDF", "eevdf", 16), ("EEVDF", "eevdf", 64), ("ideal sharing", "ideal", 16)];

pub const SIMULATE: Measurement = Measurement {
    name: "simulate",
    about: "A generated program of 10 million operations on simulated processors",
    title: "Simulating processors",
    runs: Runs::Times(5),
    sides: |setting| {
        let tool = setting.engine_example("simulate_bench")?;
        let side = |(name, kind, cpus)| {
            Side::program(format!("{name} | {cpus}"), &tool, &format!("{kind} {OPERATIONS} {cpus}"))
        };
        Ok(MACHINES.map(side).into())
    },
    says: "A generated program (calls, locks, a token passed on, barriers) on 64 threads, simulated on one core. \
           Processor time. The\ntargets are 5 million operations a second and at most 40 bytes of memory for each \
           operation, the program itself (16)\nincluded.",
    heads: "machine | CPUs",
    columns: &[
        ("operations", |side, _| side.count("operations")),
        ("processor time, ms", |side, _| side.spread("cpu_ns", 1e-6)),
        ("million operations/s", |side, _| side.ratio("operations", "cpu_ns", 1e3)),
        ("bytes per operation", |side, _| side.ratio("peak_bytes", "operations", 1.0)),
    ],
    ..Measurement::NEW
};
