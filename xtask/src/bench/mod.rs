//! `./x bench`: measures what the README claims and keeps the results, with machine and date, in BENCHMARKS.md.

mod app_files;
mod app_list;
mod app_runs;
mod apps;
mod attach;
mod exports;
mod flood;
mod graph;
mod handover;
mod in_turns;
mod interpose;
mod large_binary;
mod limit;
mod parallelism;
mod perf_data;
mod sampling;
mod simulate;
mod stall;
mod symbols;
mod tools;
mod top;
mod weights;

use std::process::ExitCode;

use anyhow::Result;

use crate::page::{self, Page};
use crate::sample;
use crate::workspace::Workspace;

pub use tools::{Scratch, recorder};
use tools::{engine_example, example};

/// What to measure.
#[derive(clap::Args)]
pub struct Options {
    /// Only this one; all if left out
    #[arg(value_enum)]
    only: Option<Which>,
    /// Of the real programs and servers only those whose names begin so (may be repeated); BENCHMARKS.md stays as it is
    #[arg(long = "only", value_name = "NAME")]
    programs: Vec<String>,
}

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Which {
    /// Weights of a generated program of 10 million operations
    Weights,
    /// A generated program of 10 million operations on simulated processors
    Simulate,
    /// Slack, the longest paths and zeroing on generated activity graphs
    Graph,
    /// What limits a generated program of a million operations
    Limit,
    /// Where the parallelism of a generated run of four million intervals goes
    Parallelism,
    /// Attaching to and detaching from 5,000 functions
    Attach,
    /// Answers of servers while somebody attaches and goes
    Stall,
    /// Requests of a server at full load while `top` watches it, and what longpole takes
    Top,
    /// Two threads handing a lock to and fro
    Handover,
    /// A mutex's lock and unlock, recorded from inside the program
    Interpose,
    /// Real programs under their own load, and the size of their recordings
    Apps,
    /// Programs that start others, or threads, or take mutexes, as fast as they can
    Storms,
    /// A recording of a million operations in each format
    Exports,
    /// Half a million events a second for a minute
    Flood,
    /// Sixteen busy threads with their stacks sampled
    Sampling,
    /// 100,000 addresses of a binary with a lot of debug information
    Symbols,
}

/// Measures, prints, and updates the sections of BENCHMARKS.md.
///
/// # Errors
/// Something does not compile, or a measurement cannot be made.
pub fn run(options: &Options) -> Result<ExitCode> {
    let workspace = Workspace::find();
    let wanted = |which| options.only.is_none_or(|only| only == which);
    let mut page = Page::read(&workspace, &page::BENCHMARKS)?;
    if wanted(Which::Weights) {
        page.put("weights", &weights::measure(&workspace)?)?;
    }
    if wanted(Which::Simulate) {
        page.put("simulate", &simulate::measure(&workspace)?)?;
    }
    if wanted(Which::Graph) {
        page.put("graph", &graph::measure(&workspace)?)?;
    }
    if wanted(Which::Limit) {
        page.put("limit", &limit::measure(&workspace)?)?;
    }
    if wanted(Which::Parallelism) {
        page.put("parallelism", &parallelism::measure(&workspace)?)?;
    }
    if wanted(Which::Symbols) {
        page.put("symbols", &symbols::measure(&workspace)?)?;
    }
    let recorded = [
        Which::Attach,
        Which::Stall,
        Which::Top,
        Which::Handover,
        Which::Interpose,
        Which::Sampling,
        Which::Apps,
        Which::Storms,
        Which::Exports,
        Which::Flood,
    ];
    if recorded.into_iter().any(wanted) {
        let longpole = recorder(&workspace)?;
        if wanted(Which::Attach) {
            page.put("attach", &attach::measure(&workspace, &longpole)?)?;
        }
        if wanted(Which::Stall) {
            let text = stall::measure(&workspace, &longpole, &options.programs)?;
            if options.programs.is_empty() {
                page.put("stall", &text)?;
            } else {
                println!("{text}");
            }
        }
        if wanted(Which::Top) {
            page.put("top", &top::measure(&workspace, &longpole)?)?;
        }
        if wanted(Which::Handover) {
            page.put("handover", &handover::measure(&workspace, &longpole)?)?;
        }
        if wanted(Which::Interpose) {
            page.put("interpose", &interpose::measure(&workspace, &longpole)?)?;
        }
        if wanted(Which::Sampling) {
            page.put("sampling", &sampling::measure(&workspace, &longpole)?)?;
        }
        for (which, name, table) in
            [(Which::Apps, "apps", apps::Table::Apps), (Which::Storms, "storms", apps::Table::Storms)]
        {
            if !wanted(which) {
                continue;
            }
            let text = apps::measure(&workspace, &longpole, table, &options.programs)?;
            if options.programs.is_empty() {
                page.put(name, &text)?;
            } else {
                println!("{text}");
            }
        }
        if wanted(Which::Exports) {
            page.put("exports", &exports::measure(&workspace, &longpole)?)?;
        }
        if wanted(Which::Flood) {
            page.put("flood", &flood::measure(&workspace, &longpole)?)?;
        }
    }
    Ok(ExitCode::SUCCESS)
}
