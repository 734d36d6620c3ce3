//! `./x validate`: compares predictions with real runs, and keeps results with machine and date in VALIDATION.md.

mod attached;
mod cores;
mod coz;
mod edits;
mod effects;
mod emulated;
mod gains;
mod metrics;
mod shapes;
mod shares;
mod speedups;
mod splash;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Result, bail};

use crate::bench::recorder;
use crate::page::{self, Page};
use crate::workspace::Workspace;

/// Builds workloads whose functions can be made faster from outside, and that can run on an emulated machine (common.h).
const SCALABLE: [&str; 1] = ["-DSCALABLE"];
/// Longest time of a run of such a workload, or of an answer about it; a longer one is a failure.
const LIMIT: Duration = Duration::from_secs(120);

/// What to compare.
#[derive(clap::Args)]
pub struct Options {
    /// Only this one; all if left out
    #[arg(value_enum)]
    only: Option<Which>,
    /// Runs of each program on each number of CPUs
    #[arg(long, default_value_t = 7)]
    runs: usize,
    /// A clone of https://github.com/OdnetninI/Splash-4, for `splash`; without it that is left out
    #[arg(long)]
    sources: Option<PathBuf>,
    /// A release binary, instead of building one: for `cores` on a machine that cannot build
    #[arg(long)]
    longpole: Option<PathBuf>,
    #[command(flatten)]
    amount: cores::Amount,
}

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Which {
    /// Speed-ups of programs of many shapes
    Shapes,
    /// The same on a machine of many CPUs, for programs of many threads
    Cores,
    /// What optimizing a function by a fifth gains, for the three programs of the 2001 paper
    Effects,
    /// The SPLASH programs of the 1999 paper
    Splash,
    /// Shares of functions, compared with those that programs know of themselves
    Shares,
    /// Shares of functions, compared with the simulated gain of making them faster
    Gains,
    /// Which metric names the function that is worth most when it is really made faster
    Metrics,
    /// What changes gain that are really made, and between what `what-if` says that it lies
    Edits,
    /// Speed-ups on an emulated machine of up to 32 CPUs
    Emulated,
    /// What coz finds out with many runs, compared with one recording
    Coz,
}

/// Compares, prints, and updates the sections of VALIDATION.md.
///
/// # Errors
/// Something does not compile, or nothing can be recorded here.
pub fn run(options: &Options) -> Result<ExitCode> {
    let workspace = Workspace::find();
    let wanted = |which| options.only.is_none_or(|only| only == which);
    let longpole = match &options.longpole {
        Some(binary) => binary.clone(),
        None => recorder(&workspace)?,
    };
    let mut page = Page::read(&workspace, &page::VALIDATION)?;
    if wanted(Which::Shapes) {
        page.put("shapes", &shapes::compare(&workspace, &longpole, options.runs)?)?;
    }
    if options.only == Some(Which::Cores) {
        page.put("cores", &cores::compare(&workspace, &longpole, options.runs, &options.amount)?)?;
    }
    if wanted(Which::Effects) {
        page.put("effects", &effects::compare(&workspace, &longpole, options.runs)?)?;
    }
    if wanted(Which::Shares) {
        page.put("shares", &shares::compare(&longpole)?)?;
    }
    if wanted(Which::Gains) {
        page.put("gains", &gains::compare(&workspace, &longpole)?)?;
    }
    if wanted(Which::Metrics) {
        page.put("metrics", &metrics::compare(&workspace, &longpole, options.runs)?)?;
    }
    if wanted(Which::Edits) {
        page.put("edits", &edits::compare(&workspace, &longpole, options.runs)?)?;
    }
    if wanted(Which::Emulated) {
        page.put("emulated", &emulated::compare(&workspace, &longpole, options.runs)?)?;
    }
    if wanted(Which::Coz) {
        match coz::compare(&workspace, &longpole, options.runs)? {
            Some(text) => page.put("coz", &text)?,
            None if options.only == Some(Which::Coz) => {
                bail!("there is no coz; on Debian: apt-get install coz-profiler");
            }
            None => eprintln!("coz is left out: it is not installed"),
        }
    }
    match &options.sources {
        Some(sources) if wanted(Which::Splash) => {
            page.put("splash", &splash::compare(&longpole, sources, options.runs)?)?;
        }
        None if options.only == Some(Which::Splash) => {
            bail!("splash needs --sources DIR, a clone of https://github.com/OdnetninI/Splash-4");
        }
        _ => {}
    }
    Ok(ExitCode::SUCCESS)
}
