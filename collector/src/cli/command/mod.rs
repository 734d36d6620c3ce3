//! Commands that read a recording or a program: one file each.

mod changes;
pub mod check;
pub mod compare_metrics;
pub mod diff;
pub mod doctor;
pub mod export;
pub mod info;
pub mod join;
pub mod manual;
pub mod notes;
mod output;
pub mod parallelism;
pub mod paths;
pub mod per;
pub mod predict;
mod progress;
pub mod report;
pub mod slack;
pub mod symbolize;
pub mod view;
pub mod what_if;

use crate::cores;
use crate::exit::UserError;
use crate::input::Input;
use crate::plan::{InputPlan, Source};
use crate::present::frame::Frame;
use engine::attribution::Grouping;
use engine::attribution::{Owners, attributed_to_users, with_sampled_calls};
use engine::limit::{Limits, Search};
use engine::predict::{Model, Scheduler};
use engine::program::{Program, ProgramError, Samples};
use engine::report::{Builder, Cpus, Detail, Report};
use progress::Progress;

/// Number of functions whose removal `slack` and `paths` also simulate, with one run each.
const SIMULATED: usize = 10;

/// The error for a program that cannot be scheduled.
fn invalid(error: ProgramError) -> UserError {
    UserError::runtime(error.to_string(), error.hint())
}

/// The usual machine with this scheduler.
fn model(scheduler: Option<Scheduler>) -> Model {
    Model { scheduler, ..Model::default() }
}

/// Like [`engine::report::report_by`], but computed on all cores: each core takes the next CPU counts.
fn report_on_all_cores(
    program: &Program,
    cpus: &[Cpus],
    detail: Detail,
    grouping: Grouping,
    model: &Model,
) -> Report {
    match Builder::new(program, cpus, detail, grouping, model) {
        Ok(builder) => {
            let parts = on_all_cores(&builder.groups(), |cpus| builder.at(cpus));
            builder.conclude(parts.into_iter().flatten().collect())
        }
        Err(report) => *report,
    }
}

/// Like [`engine::limit::limits`], but computed on all cores: each core takes the next question.
fn limits_on_all_cores(program: &Program, cpus: &[Cpus], model: &Model) -> Limits {
    let Ok(search) = Search::new(program, cpus, model) else { return Limits::default() };
    let found = on_all_cores(search.counts(), |cpus| search.at(*cpus));
    let fixes = on_all_cores(&search.edits(&found), |edit| search.fix(edit, &found));
    let functions = on_all_cores(&search.functions(), |function| search.tenth(*function, &found));
    search.conclude(found, fixes.into_iter().flatten().collect(), functions.into_iter().flatten().collect())
}

/// The limits, without changes.
fn limit_on_all_cores(program: &Program, cpus: &[Cpus], model: &Model) -> Limits {
    Search::new(program, cpus, model).map_or_else(|_| Limits::default(), limit_of)
}

fn limit_of(search: Search) -> Limits {
    let found = on_all_cores(search.counts(), |cpus| search.at(*cpus));
    search.conclude(found, Vec::new(), Vec::new())
}

/// The frame around a command's table: the limits, and the name of the file.
fn frame(input: &InputPlan, program: &Program, cpus: &[Cpus], model: &Model) -> Frame {
    framed(input, program, limit_on_all_cores(program, cpus, model))
}

/// The frame of an answer, for limits that were already computed.
fn framed(input: &InputPlan, program: &Program, limits: Limits) -> Frame {
    Frame { doubts: limits.doubts(program.overhead), limits, file: file_name(input) }
}

/// The largest CPU count for which commands without `--cpus` give the limit, as `report` does.
fn usual_cpus() -> Vec<Cpus> {
    Cpus::count(16).into_iter().collect()
}

/// The file as the user gave it; empty for the newest one, which other commands also read by default.
fn file_name(input: &InputPlan) -> String {
    match &input.source {
        Source::Stdin => "-".to_owned(),
        Source::File(path) => path.display().to_string(),
        Source::Newest => String::new(),
    }
}

/// Like [`cores::on_all_cores`], but shows the progress on standard error.
fn on_all_cores<T: Sync, A: Send>(things: &[T], work: impl Fn(&T) -> A + Sync) -> Vec<A> {
    simulated(things, "schedules", work)
}

/// Like [`on_all_cores`]; `what` is the plural name of the things for the progress line.
fn simulated<T: Sync, A: Send>(things: &[T], what: &'static str, work: impl Fn(&T) -> A + Sync) -> Vec<A> {
    let progress = Progress::new(things.len(), what);
    cores::on_all_cores(things, |thing| {
        let answer = work(thing);
        progress.step();
        answer
    })
}

/// A program whose single operations are examined or changed: its samples are turned into calls, or dropped. The
/// program itself is kept as well, since its samples show what limits.
struct Studied {
    program: Program,
    own: Program,
    /// Which functions are changed together with a function.
    owners: Owners,
}

/// Reads an input. Standard functions count for their callers, or with `all` for themselves.
fn studied(input: &InputPlan, probed_only: bool, all: bool) -> Result<Studied, UserError> {
    let mut own = Input::open(input)?.into_program();
    if probed_only {
        own.samples = Samples::default();
    }
    let owners = if all { Owners::themselves(&own) } else { Owners::of(&own) };
    let program = if all { own.clone() } else { attributed_to_users(own.clone()) };
    Ok(Studied { program: with_sampled_calls(program), own, owners })
}

impl Studied {
    /// The program that changes are applied to: each function counts for itself.
    fn changed(&self) -> Program {
        with_sampled_calls(self.own.clone())
    }
}
