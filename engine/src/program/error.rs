//! Errors in a program: one line with the error and its place, and a hint.

use crate::words::quoted;
use std::fmt;

/// Why a text or a [`super::Program`] is not a valid program. `Display` is one line; [`ProgramError::hint`] says how to
/// fix the program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProgramError {
    place: Option<String>,
    problem: String,
    hint: &'static str,
}

impl ProgramError {
    /// How to fix the error; one line.
    pub fn hint(&self) -> &'static str {
        self.hint
    }

    pub(crate) fn new(problem: impl Into<String>, hint: &'static str) -> ProgramError {
        ProgramError { place: None, problem: problem.into(), hint }
    }

    /// The error, placed in the operation with this index, in the thread with this name.
    pub(crate) fn at(mut self, thread: &str, operation: usize) -> ProgramError {
        self.place = Some(format!("thread {}, operation {operation}", quoted(thread)));
        self
    }
}

impl fmt::Display for ProgramError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.place {
            Some(place) => write!(out, "{place}: {}", self.problem),
            None => out.write_str(&self.problem),
        }
    }
}

impl std::error::Error for ProgramError {}
