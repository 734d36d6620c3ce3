//! Counts of records that are missing in a recording.

use crate::json::is_zero;
use serde::{Deserialize, Serialize};

/// Counts of records that were lost or not recorded on purpose, by reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct LossCounts {
    /// The ring was full.
    pub dropped: u64,
    /// The kernel did not run the eBPF program (re-entry, recursion limit).
    pub missed: u64,
    /// Lost synchronization operations of a launched command's threads: the threads were faster than the reader.
    pub operations: u64,
    /// The part of `operations` that was lost for lack of memory, though the thread's ring had room.
    #[serde(skip_serializing_if = "is_zero")]
    pub operations_short: u64,
    /// Operations not recorded on purpose: those on mutexes by a process's only thread, when they were too frequent for
    /// the overhead goal.
    pub operations_left_out: u64,
    /// Mutex operations that were counted but not recorded: pairs of an uncontended acquisition and its release. The
    /// thread was faster than the ring reader, and its ring was nearly full.
    #[serde(skip_serializing_if = "is_zero")]
    pub operations_counted: u64,
    /// Counted instead of recorded: operations of threads that may no longer read the clock or call the kernel, where
    /// recording might have ended the program.
    pub operations_forbidden: u64,
    /// Arrived after newer records had been released (see `merge`).
    pub late: u64,
    /// Bytes that were not a record.
    pub undecodable: u64,
    /// Switches of recorded threads that the kernel did not report, for unknown reasons: a thread left a CPU to which it had
    /// not come. Each becomes a contradiction in the timeline.
    pub unseen_switches: u64,
    /// Calls not recorded on purpose: recursive ones below a function's first open frame.
    pub recursion_folded: u64,
}

impl LossCounts {
    /// Number of records lost. Folded recursion and operations that were not recorded on purpose are not included.
    /// Switches that the kernel did not report were never records; they show as contradictions and unknown time.
    pub fn lost(&self) -> u64 {
        [self.dropped, self.missed, self.operations, self.late, self.undecodable]
            .into_iter()
            .fold(0, u64::saturating_add)
    }

    /// The losses since `earlier`, counted in the same recording.
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
