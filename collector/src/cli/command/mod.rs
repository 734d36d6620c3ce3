//! The commands that read: one file each.

pub mod check;
pub mod diff;
pub mod doctor;
pub mod export;
pub mod info;
pub mod manual;
pub mod notes;
mod output;
pub mod paths;
pub mod predict;
pub mod report;
pub mod slack;
pub mod symbolize;
pub mod what_if;

use super::UserError;
use super::input::Input;
use super::plan::InputPlan;
use crate::cores::on_all_cores;
use engine::attribution::Grouping;
use engine::attribution::spelled_out;
use engine::limit::{Limits, Search};
use engine::predict::{Model, Scheduler};
use engine::program::{Program, ProgramError, Samples};
use engine::report::{Builder, Cpus, Detail, Report};

/// A program that cannot be scheduled.
fn invalid(error: ProgramError) -> UserError {
    UserError::runtime(error.to_string(), error.hint())
}

/// The usual machine, with CPUs shared so.
fn model(scheduler: Option<Scheduler>) -> Model {
    Model { scheduler, ..Model::default() }
}

/// [`engine::report::report_by`], each core of this machine taking the next CPU counts.
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

/// [`engine::limit::limits`], each core of this machine taking the next question.
fn limits_on_all_cores(program: &Program, cpus: &[Cpus], model: &Model) -> Limits {
    let Ok(search) = Search::new(program, cpus, model) else { return Limits::default() };
    let found = on_all_cores(search.counts(), |cpus| search.at(*cpus));
    let brings = on_all_cores(&search.changes(&found), |change| search.brings(change, &found));
    let functions =
        on_all_cores(&search.functions(), |(function, share)| search.tenth(*function, *share, &found));
    search.conclude(found, brings.into_iter().flatten().collect(), functions.into_iter().flatten().collect())
}

/// A program whose single operations are looked at or changed: what samples show is written out as calls, or left out.
fn studied(input: &InputPlan, probed_only: bool) -> Result<Program, UserError> {
    let mut program = Input::open(input)?.into_program();
    if probed_only {
        program.samples = Samples::default();
    }
    Ok(spelled_out(program))
}
