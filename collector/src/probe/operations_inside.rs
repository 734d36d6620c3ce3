//! What the target records by itself: its part of what recording costs.

use std::sync::atomic::Ordering;

use super::capture::Capture;

impl Capture {
    /// So many synchronization operations have been recorded in the target itself, and so much of its threads' time that has
    /// taken, nanoseconds: the budget counts it, though it takes nothing of it off.
    pub fn see_operations(&self, operations: u64, took_ns: u64) {
        self.common.shared.operations.store(operations, Ordering::Relaxed);
        self.common.shared.operation_ns.store(took_ns, Ordering::Relaxed);
    }
}
