//! What leaving a function out brings when everything is decided again: beside what a graph of the recorded order says.

use super::edit::{Edit, edited};
use super::trial::trial;
use crate::cpus::Cpus;
use crate::predict::Model;
use crate::program::{FunctionRef, Program, ProgramError};

/// How much shorter the run on so many CPUs gets if each of these functions takes no time at all, nanoseconds, with locks
/// taken in whatever order then comes; below 0 it gets longer. `None` where the change cannot be made. One run for each
/// function and one for all.
///
/// # Errors
/// The program fails [`Program::check`].
pub fn without(
    program: &Program,
    functions: &[FunctionRef],
    cpus: Cpus,
    model: &Model,
) -> Result<Vec<Option<f64>>, ProgramError> {
    if functions.is_empty() {
        return Ok(Vec::new());
    }
    let time_ns = |program: &Program| -> Result<Option<f64>, ProgramError> {
        let results = trial(program, &[cpus], model)?.results;
        Ok(results.first().map(|result| result.time_ns))
    };
    let before = time_ns(program)?;
    let gains = functions.iter().map(|function| {
        let Ok(after) = edited(program, &[Edit::Scale(vec![*function], 0.0)]) else { return Ok(None) };
        Ok(before.zip(time_ns(&after)?).map(|(before, after)| before - after))
    });
    gains.collect()
}
