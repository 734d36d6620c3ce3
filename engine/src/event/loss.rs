//! Records that are missing from a recording, as they were counted.

use crate::json::is_zero;
use serde::{Deserialize, Serialize};

/// Records that did not make it, by reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct LossCounts {
    /// The ring was full.
    pub dropped: u64,
    /// The kernel did not run the program (re-entry, recursion limit).
    pub missed: u64,
    /// Synchronization operations that a thread of a launched command made faster than they could be taken from it.
    pub operations: u64,
    /// Those of them for which there was no memory, though their thread's ring had room.
    #[serde(skip_serializing_if = "is_zero")]
    pub operations_short: u64,
    /// Left out on purpose: mutex operations of the only thread of a process, where they were too frequent
    /// for the overhead goal.
    pub operations_left_out: u64,
    /// Only counted, in whole pairs of an acquisition and its release that no thread waited for: their thread
    /// made operations faster than they could be read, and there was hardly any room left.
    #[serde(skip_serializing_if = "is_zero")]
    pub operations_counted: u64,
    /// Not recorded, only counted: operations of threads that had been forbidden the clock or system calls, so that
    /// recording them might have ended the program.
    pub operations_forbidden: u64,
    /// Arrived after newer records had been released.
    pub late: u64,
    /// Bytes that were no record.
    pub undecodable: u64,
    /// Switches of recorded threads that the kernel did not report, for no known reason: a thread left a CPU
    /// to which it had not come. The timeline makes a contradiction of each.
    pub unseen_switches: u64,
    /// Left out on purpose: calls below the first open frame of the same function.
    pub recursion_folded: u64,
}

impl LossCounts {
    /// Records that were lost. Folded recursion and operations left out or forbidden are deliberate and do
    /// not count. Switches that the kernel did not report were never records: they show as contradictions and
    /// unknown time.
    pub fn lost(&self) -> u64 {
        [self.dropped, self.missed, self.operations, self.late, self.undecodable]
            .into_iter()
            .fold(0, u64::saturating_add)
    }

    /// What was lost since an earlier look at the same recording.
    pub fn since(&self, earlier: &LossCounts) -> LossCounts {
        LossCounts {
            dropped: self.dropped.saturating_sub(earlier.dropped),
            operations: self.operations.saturating_sub(earlier.operations),
            operations_left_out: self.operations_left_out.saturating_sub(earlier.operations_left_out),
            operations_short: self.operations_short.saturating_sub(earlier.operations_short),
            operations_counted: self.operations_counted.saturating_sub(earlier.operations_counted),
            operations_forbidden: self.operations_forbidden.saturating_sub(earlier.operations_forbidden),
            missed: self.missed.saturating_sub(earlier.missed),
            unseen_switches: self.unseen_switches.saturating_sub(earlier.unseen_switches),
            late: self.late.saturating_sub(earlier.late),
            undecodable: self.undecodable.saturating_sub(earlier.undecodable),
            recursion_folded: self.recursion_folded.saturating_sub(earlier.recursion_folded),
        }
    }
}
