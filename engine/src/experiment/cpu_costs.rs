//! Changes functions' CPU time to the time that they take on another number of CPUs.

use super::edit::EditError;
use crate::cpus::Cpus;
use crate::predict::CpuCosts;
use crate::program::Program;

/// On any number of CPUs, all functions take the CPU time that runs of the command on `cpus` CPUs show.
pub(super) fn cost_as_on(program: &mut Program, cpus: u32) -> Result<(), EditError> {
    let nothing = EditError::NothingToChange("it costs the same on all numbers of CPUs that it was run on");
    let costs = CpuCosts::of(program).zip(Cpus::count(cpus));
    let factors = costs.and_then(|(costs, cpus)| costs.factors(program, cpus)).ok_or(nothing)?;
    *program = std::mem::take(program).with_compute(&factors);
    // Without the runs, CPU time grows no more.
    program.machine.iter_mut().for_each(|machine| machine.cpu_runs.clear());
    Ok(())
}
