//! `./x bench`: measures what the README claims, and writes the results with machine and date into BENCHMARKS.md.

mod analysis;
mod apps;
mod attach;
mod exports;
mod flood;
mod graph;
mod handover;
mod interpose;
mod large_binary;
mod limit;
mod parallelism;
mod perf_data;
mod promise;
mod sampling;
mod simulate;
mod stall;
mod start;
mod summary;
mod symbols;
mod top;
mod weights;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;

use crate::measure::{self, Measurement, Wishes};
use crate::page;

/// All benchmarks in the order in which they run. Benchmarks without a recording come first.
const BENCHMARKS: [Measurement; 19] = [
    weights::WEIGHTS,
    simulate::SIMULATE,
    graph::GRAPH,
    limit::LIMIT,
    parallelism::PARALLELISM,
    symbols::SYMBOLS,
    start::START,
    attach::ATTACH,
    stall::STALL,
    top::TOP,
    handover::HANDOVER,
    interpose::INTERPOSE,
    sampling::SAMPLING,
    apps::APPS,
    apps::STORMS,
    promise::PROMISE,
    exports::EXPORTS,
    analysis::ANALYSIS,
    flood::FLOOD,
];

/// What to measure.
#[derive(Clone, clap::Args)]
pub struct Options {
    /// Only this one; all if left out
    #[arg(value_parser = measure::names(&BENCHMARKS))]
    only: Option<String>,
    /// Of the real programs and servers only those whose names begin so (may be repeated); BENCHMARKS.md stays as it is
    #[arg(long = "only", value_name = "NAME")]
    programs: Vec<String>,
    /// Of `analysis` also a generated recording of 100 million events, which takes minutes and a gigabyte of disk
    #[arg(long)]
    huge: bool,
    /// A release binary, instead of building one
    #[arg(long)]
    longpole: Option<PathBuf>,
    /// Runs of each, instead of each benchmark's own number
    #[arg(long, value_name = "N", env = "LONGPOLE_BENCH_RUNS")]
    runs: Option<usize>,
}

/// Measures, prints the results, and updates the sections of BENCHMARKS.md.
pub fn run(options: &Options) -> Result<ExitCode> {
    let Options { only, programs, huge, longpole, runs } = options.clone();
    let wishes = Wishes { runs, programs, huge, longpole, ..Wishes::default() };
    measure::run(&BENCHMARKS, &page::BENCHMARKS, only.as_deref(), &wishes)
}
