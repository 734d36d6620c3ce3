//! `./x validate`: compares predictions with real runs, and writes the results with machine and date into
//! VALIDATION.md.

mod attached;
mod cores;
mod coz;
mod edits;
mod effects;
mod emulated;
mod gains;
mod metrics;
mod programs;
mod servers;
mod shapes;
mod shares;
mod speedups;
mod splash;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;

use crate::measure::{self, Measurement, Wishes};
use crate::page;

/// All validations, in the order in which they run.
const VALIDATIONS: [Measurement; 11] = [
    shapes::SHAPES,
    cores::CORES,
    effects::EFFECTS,
    shares::SHARES,
    gains::GAINS,
    metrics::METRICS,
    edits::EDITS,
    emulated::EMULATED,
    coz::COZ,
    servers::SERVERS,
    splash::SPLASH,
];

/// What to compare.
#[derive(Clone, clap::Args)]
pub struct Options {
    /// Only this one; all if left out
    #[arg(value_parser = measure::names(&VALIDATIONS))]
    only: Option<String>,
    /// Of the real servers only those whose names begin so (may be repeated); VALIDATION.md stays as it is
    #[arg(long = "only", value_name = "NAME")]
    programs: Vec<String>,
    /// Runs of each program on each number of CPUs
    #[arg(long, default_value_t = 7)]
    runs: usize,
    /// A clone of https://github.com/OdnetninI/Splash-4, for `splash`; without it that is left out
    #[arg(long)]
    sources: Option<PathBuf>,
    /// A release binary, instead of building one: for `cores` on a machine that cannot build
    #[arg(long)]
    longpole: Option<PathBuf>,
    /// For `cores`, on a machine that is lent by the minute: begin no other program after this time
    #[arg(long)]
    minutes: Option<u64>,
    /// For `cores` and `servers`: what is kept in target/cores or target/servers is not run again; longpole is asked again about
    /// recordings of servers
    #[arg(long)]
    resume: bool,
}

/// Compares, prints the results, and updates the sections of VALIDATION.md.
pub fn run(options: &Options) -> Result<ExitCode> {
    let Options { only, programs, runs, sources, longpole, minutes, resume } = options.clone();
    let wishes =
        Wishes { runs: Some(runs), programs, sources, longpole, minutes, resume, ..Wishes::default() };
    measure::run(&VALIDATIONS, &page::VALIDATION, only.as_deref(), &wishes)
}
