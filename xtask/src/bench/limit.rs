//! Cost of finding the limit, compared with the cost of the report on which it is based.

use crate::measure::{Measurement, Runs, Side};

const OPERATIONS: [u64; 3] = [100_000, 300_000, 1_000_000];

pub const LIMIT: Measurement = Measurement {
    name: "limit",
    about: "What limits a generated program of a million operations",
    title: "What limits",
    runs: Runs::Times(5),
    sides: |setting| {
        let tool = setting.engine_example("limit_bench")?;
        let side = |operations: u64| Side::program(operations.to_string(), &tool, &operations.to_string());
        Ok(OPERATIONS.map(side).into())
    },
    says: "A generated program on 16 threads: `report` for 6 CPU counts, and besides it LIMIT, FIX and what a tenth \
           of each\nfunction is worth. Processor time on one core. Of a million operations the second may take half \
           as long as the first.",
    heads: "operations",
    columns: &[
        ("report, ms", |side, _| side.spread("report_ns", 1e-6)),
        ("limit, ms", |side, _| side.spread("limit_ns", 1e-6)),
        ("limit ÷ report", |side, _| side.ratio("limit_ns", "report_ns", 1.0)),
        ("runs", |side, _| side.count("runs")),
    ],
    ..Measurement::NEW
};
