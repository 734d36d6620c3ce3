//! The gain of leaving a function out, simulated with every order decided again, to compare with a graph of the recorded
//! order.

use crate::attribution::Owners;
use crate::cpus::Cpus;
use crate::experiment::{Edit, edited};
use crate::predict::{Model, Timing};
use crate::program::{FunctionRef, Program, ProgramError};

/// A program that is run without functions. [`Without::gain_ns`] is the work: a run for each function.
#[derive(Debug)]
pub struct Without<'a> {
    program: &'a Program,
    owners: &'a Owners,
    cpus: Cpus,
    model: &'a Model,
    before_ns: f64,
}

impl<'a> Without<'a> {
    /// Prepares for this number of CPUs; takes one run. A function is always removed together with the functions that
    /// count for it.
    ///
    /// # Errors
    /// The program fails [`Program::check`].
    pub fn new(
        (program, owners): (&'a Program, &'a Owners),
        cpus: Cpus,
        model: &'a Model,
    ) -> Result<Without<'a>, ProgramError> {
        let before_ns = Timing::new(program, model)?.time_ns(cpus);
        Ok(Without { program, owners, cpus, model, before_ns })
    }

    /// Like `new`; `None` if `functions` is 0, which saves the run.
    ///
    /// # Errors
    /// As [`Without::new`].
    pub(crate) fn new_for(
        functions: usize,
        of: (&'a Program, &'a Owners),
        cpus: Cpus,
        model: &'a Model,
    ) -> Result<Option<Without<'a>>, ProgramError> {
        (functions > 0).then(|| Without::new(of, cpus, model)).transpose()
    }

    /// How much shorter the run gets if this function takes no time, nanoseconds, where the simulation decides again
    /// who gets which lock; below 0 the run gets longer. `None` if the change cannot be made.
    pub fn gain_ns(&self, function: FunctionRef) -> Option<f64> {
        let after = edited(self.program, &[Edit::Scale(self.owners.owned_by(function), 0.0)]).ok()?;
        let after_ns = Timing::new(&after, self.model).ok()?.time_ns(self.cpus);
        Some(self.before_ns - after_ns)
    }
}
