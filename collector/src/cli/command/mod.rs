//! The commands that read: one file each.

pub mod check;
pub mod diff;
pub mod doctor;
pub mod export;
pub mod info;
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
use engine::attribution::spelled_out;
use engine::program::{Program, ProgramError, Samples};

/// A program that cannot be scheduled.
fn invalid(error: ProgramError) -> UserError {
    UserError::runtime(error.to_string(), error.hint())
}

/// A program whose single operations are looked at or changed: what samples show is written out as calls, or left out.
fn studied(input: &InputPlan, probed_only: bool) -> Result<Program, UserError> {
    let mut program = Input::open(input)?.into_program();
    if probed_only {
        program.samples = Samples::default();
    }
    Ok(spelled_out(program))
}
