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
use engine::program::ProgramError;

/// A program that cannot be scheduled.
fn invalid(error: ProgramError) -> UserError {
    UserError::runtime(error.to_string(), error.hint())
}
