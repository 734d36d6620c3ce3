//! Bounds on the number of steps of a run (ours). Without them, a small file could keep the simulation busy for years: time
//! slices, periods of a quota and repeated background work cost a step each, however long the program computes. A run of a
//! recording of hours stays far below the bounds, since its operations raise them.

use crate::program::Program;

/// Number of instants that each run may have.
const INSTANTS: u64 = 1 << 20;
/// Number of further instants for each operation of the program.
const INSTANTS_PER_OPERATION: u64 = 64;
/// Number of slices with their true length in each run, and further ones for each operation.
const SLICES: u64 = 1 << 19;
const SLICES_PER_OPERATION: u64 = 4;
/// After this many further slices, slices get [`LONGER`] times as long.
const SLICES_OF_A_LENGTH: u64 = 1 << 14;
/// See [`SLICES_OF_A_LENGTH`].
const LONGER: u64 = 4;

/// The instants of a run that are left.
#[derive(Clone, Copy, Debug)]
pub(super) struct Steps {
    left: u64,
}

impl Steps {
    pub(super) fn of(program: &Program) -> Steps {
        let more = operations(program).saturating_mul(INSTANTS_PER_OPERATION);
        Steps { left: INSTANTS.saturating_add(more) }
    }

    /// Takes one step; `None` if there is none left.
    pub(super) fn take(&mut self) -> Option<()> {
        self.left = self.left.checked_sub(1)?;
        Some(())
    }

    /// Whether the run is cut off, since it would take too many steps.
    pub(super) fn are_over(self) -> bool {
        self.left == 0
    }
}

/// The slices of a run until the next ones are longer.
#[derive(Clone, Copy, Debug)]
pub(super) struct SlicesLeft(u64);

impl SlicesLeft {
    pub(super) fn of(program: &Program) -> SlicesLeft {
        SlicesLeft(SLICES.saturating_add(operations(program).saturating_mul(SLICES_PER_OPERATION)))
    }

    /// Takes one slice; returns the factor by which later slices are longer.
    pub(super) fn take(&mut self) -> u64 {
        self.0 = self.0.saturating_sub(1);
        if self.0 > 0 {
            return 1;
        }
        self.0 = SLICES_OF_A_LENGTH;
        LONGER
    }
}

fn operations(program: &Program) -> u64 {
    program.threads.iter().map(|thread| thread.operations.len() as u64).sum()
}
