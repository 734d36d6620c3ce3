//! The activity graph of a program, with or without a machine's costs.

use super::activity::ActivityGraph;
use super::build::Builder;
use crate::cpus::Cpus;
use crate::predict::{Model, Timing};
use crate::program::{Program, ProgramError};
use crate::schedule::{SharedCpuCosts, Simulation};
use crate::time::Ticks;

/// Largest number of edges of an operation, on average: its own edge and two wake edges.
const MOST_EDGES_PER_OPERATION: usize = 3;

impl ActivityGraph {
    /// The graph of a program's schedule on unlimited processors. Linear in the number of operations, apart from scheduling.
    /// A deadlock is a finding, and the graph ends with it.
    ///
    /// # Errors
    /// The program fails [`Program::check`], or has more operations than a graph can hold (1.4 thousand million).
    pub fn of(program: &Program) -> Result<ActivityGraph, ProgramError> {
        let operations = room(program)?;
        let schedule = Simulation::new(program)?.traced().finish();
        Ok(Builder::new(program, &schedule, &[], &[], operations).graph())
    }

    /// The graph of the schedule on a model of the machine, with enough CPUs that no thread waits for one.
    ///
    /// # Errors
    /// As [`ActivityGraph::of`].
    pub fn on(program: &Program, model: &Model) -> Result<ActivityGraph, ProgramError> {
        let timing = Timing::new(program, model)?;
        ActivityGraph::with_costs(program, &timing.costs(Cpus::Infinite))
    }

    /// The graph of the schedule with these costs of waking threads, on enough CPUs that no thread waits for one.
    ///
    /// # Errors
    /// As [`ActivityGraph::of`].
    pub fn with_costs(program: &Program, costs: &SharedCpuCosts) -> Result<ActivityGraph, ProgramError> {
        if costs.wake_latency == Ticks(0) && costs.wake_cost == Ticks(0) {
            return ActivityGraph::of(program);
        }
        program.check()?;
        let operations = room(program)?;
        let costed = Simulation::traced_with_costs(program, costs).run_to_end();
        let schedule = &costed.schedule;
        Ok(Builder::new(program, schedule, &costed.delays, &costed.charges, operations).graph())
    }
}

/// The program's number of operations, if a graph can hold their edges.
fn room(program: &Program) -> Result<usize, ProgramError> {
    let operations: usize = program.threads.iter().map(|thread| thread.operations.len()).sum();
    let most = operations
        .saturating_mul(MOST_EDGES_PER_OPERATION)
        .saturating_add(program.threads.len().saturating_mul(2));
    if u32::try_from(most).is_err() {
        return Err(ProgramError::new(
            format!("{operations} operations are too many for an activity graph"),
            "record a shorter window",
        ));
    }
    Ok(operations)
}
