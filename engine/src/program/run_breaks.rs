//! Finds where a thread's runs of compute operations start: see `schedule::runs`.

use super::Operation;

/// Finds where runs start, while walking through a thread's operations. No other code decides this.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RunBreaks {
    inside: bool,
}

impl RunBreaks {
    /// Whether this operation is the first of a run. Must be called for each operation, in order.
    pub(crate) fn starts_run(&mut self, operation: &Operation) -> bool {
        match operation {
            Operation::Exec(_) | Operation::ExecIn(..) => !std::mem::replace(&mut self.inside, true),
            Operation::Call(_) | Operation::Return | Operation::Held(..) | Operation::Freed(..) => false,
            Operation::Once(..) => {
                self.inside = false;
                true
            }
            _ => {
                self.inside = false;
                false
            }
        }
    }
}
