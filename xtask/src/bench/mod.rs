//! `./x bench`: measures what the README claims, and keeps results with machine and date in BENCHMARKS.md.

mod analysis;
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
mod promise;
mod sampling;
mod simulate;
mod stall;
mod start;
mod symbols;
mod tools;
mod top;
mod weights;

use std::path::Path;
use std::process::ExitCode;

use anyhow::Result;

use crate::page::{self, Page};
use crate::sample;
use crate::workspace::Workspace;

use tools::{Figures, Watched, engine_example, example, memory_kib, watched};
pub use tools::{Scratch, recorder};

/// What to measure.
#[derive(clap::Args)]
pub struct Options {
    /// Only this one; all if left out
    #[arg(value_enum)]
    only: Option<Which>,
    /// Of the real programs and servers only those whose names begin so (may be repeated); BENCHMARKS.md stays as it is
    #[arg(long = "only", value_name = "NAME")]
    programs: Vec<String>,
    /// Of `analysis` also a generated recording of 100 million events, which takes minutes and a gigabyte of disk
    #[arg(long)]
    huge: bool,
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
    /// CPU time of a start, launched and attached
    Start,
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
    /// What recording costs twelve programs, launched, attached to and under `top`, and what longpole says of that
    Promise,
    /// A recording of a million operations in each format
    Exports,
    /// What `report` and `info` take of recordings of several sizes, and `perf sched timehist` of the same programs
    Analysis,
    /// Half a million events a second for a minute
    Flood,
    /// Sixteen busy threads with their stacks sampled
    Sampling,
    /// 100,000 addresses of a binary with a lot of debug information
    Symbols,
}

/// Makes a section of BENCHMARKS.md.
type Measure = fn(&Workspace) -> Result<String>;

/// Measurements without recording, and the names of their sections in the page.
const ALONE: [(Which, &str, Measure); 6] = [
    (Which::Weights, "weights", weights::measure),
    (Which::Simulate, "simulate", simulate::measure),
    (Which::Graph, "graph", graph::measure),
    (Which::Limit, "limit", limit::measure),
    (Which::Parallelism, "parallelism", parallelism::measure),
    (Which::Symbols, "symbols", symbols::measure),
];

/// Like `Measure`, for a measurement that records and so needs a longpole with the rights to do so.
type MeasureRecorder = fn(&Workspace, &Path, &Options) -> Result<String>;

/// Measurements that record, and the names of their sections in the page.
const RECORDED: [(Which, &str, MeasureRecorder); 13] = [
    (Which::Start, "start", |workspace, longpole, _| start::measure(workspace, longpole)),
    (Which::Attach, "attach", |workspace, longpole, _| attach::measure(workspace, longpole)),
    (Which::Stall, "stall", |workspace, longpole, options| {
        stall::measure(workspace, longpole, &options.programs)
    }),
    (Which::Top, "top", |workspace, longpole, _| top::measure(workspace, longpole)),
    (Which::Handover, "handover", |workspace, longpole, _| handover::measure(workspace, longpole)),
    (Which::Interpose, "interpose", |workspace, longpole, _| interpose::measure(workspace, longpole)),
    (Which::Sampling, "sampling", |workspace, longpole, _| sampling::measure(workspace, longpole)),
    (Which::Apps, "apps", |workspace, longpole, options| {
        apps::measure(workspace, longpole, apps::Table::Apps, &options.programs)
    }),
    (Which::Storms, "storms", |workspace, longpole, options| {
        apps::measure(workspace, longpole, apps::Table::Storms, &options.programs)
    }),
    (Which::Promise, "promise", |workspace, longpole, options| {
        promise::measure(workspace, longpole, &options.programs)
    }),
    (Which::Exports, "exports", |workspace, longpole, _| exports::measure(workspace, longpole)),
    (Which::Analysis, "analysis", |workspace, longpole, options| {
        analysis::measure(workspace, longpole, &options.programs, options.huge)
    }),
    (Which::Flood, "flood", |workspace, longpole, _| flood::measure(workspace, longpole)),
];

/// Measures, prints, and updates the sections of BENCHMARKS.md.
///
/// # Errors
/// Something does not compile, or a measurement cannot be made.
pub fn run(options: &Options) -> Result<ExitCode> {
    let workspace = Workspace::find();
    let wanted = |which| options.only.is_none_or(|only| only == which);
    let mut page = Page::read(&workspace, &page::BENCHMARKS)?;
    for (_, name, measure) in ALONE.into_iter().filter(|(which, ..)| wanted(*which)) {
        page.put(name, &measure(&workspace)?)?;
    }
    if !RECORDED.into_iter().any(|(which, ..)| wanted(which)) {
        return Ok(ExitCode::SUCCESS);
    }
    let longpole = recorder(&workspace)?;
    for (which, name, measure) in RECORDED.into_iter().filter(|(which, ..)| wanted(*which)) {
        let text = measure(&workspace, &longpole, options)?;
        if options.programs.is_empty()
            || !matches!(which, Which::Stall | Which::Apps | Which::Storms | Which::Promise | Which::Analysis)
        {
            page.put(name, &text)?;
        } else {
            println!("{text}");
        }
    }
    Ok(ExitCode::SUCCESS)
}
