//! `./x validate`: are the predictions true? Keeps what was found, with machine and date, in VALIDATION.md.

mod effects;
mod shapes;

use std::process::ExitCode;

use anyhow::Result;

use crate::bench::recorder;
use crate::page::{self, Page};
use crate::workspace::Workspace;

/// What to compare.
#[derive(clap::Args)]
pub struct Options {
    /// Only this one; all if left out
    #[arg(value_enum)]
    only: Option<Which>,
    /// Runs of each program on each number of CPUs
    #[arg(long, default_value_t = 7)]
    runs: usize,
}

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Which {
    /// Speed-ups of programs of many shapes
    Shapes,
    /// What optimizing a function by a fifth gains, for the three programs of the 2001 paper
    Effects,
}

/// Compares, prints, and updates the sections of VALIDATION.md.
///
/// # Errors
/// Something does not compile, or nothing can be recorded here.
pub fn run(options: &Options) -> Result<ExitCode> {
    let workspace = Workspace::find();
    let wanted = |which| options.only.is_none_or(|only| only == which);
    let longpole = recorder(&workspace)?;
    let mut page = Page::read(&workspace, &page::VALIDATION)?;
    if wanted(Which::Shapes) {
        page.put("shapes", &shapes::compare(&longpole, options.runs)?)?;
    }
    if wanted(Which::Effects) {
        page.put("effects", &effects::compare(&workspace, &longpole, options.runs)?)?;
    }
    Ok(ExitCode::SUCCESS)
}
