//! The part of the recording's cost that the library in the target causes.

use std::sync::atomic::{AtomicU64, Ordering};

/// Number of operations that the library in the target has handled so far, and their cost in time of their threads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PreloadCost {
    /// Operations recorded.
    pub recorded: u64,
    /// Cost of recording these operations, nanoseconds.
    pub recorded_ns: u64,
    /// Operations that were not recorded, to stay within the budget.
    pub left_out: u64,
    /// Cost of deciding not to record these operations, nanoseconds.
    pub left_out_ns: u64,
}

/// The counts of [`PreloadCost`], shared by several threads.
#[derive(Debug, Default)]
pub(crate) struct SharedPreloadCost {
    recorded: AtomicU64,
    recorded_ns: AtomicU64,
    left_out: AtomicU64,
    left_out_ns: AtomicU64,
}

impl SharedPreloadCost {
    pub(crate) fn store(&self, seen: &PreloadCost) {
        self.recorded.store(seen.recorded, Ordering::Relaxed);
        self.recorded_ns.store(seen.recorded_ns, Ordering::Relaxed);
        self.left_out.store(seen.left_out, Ordering::Relaxed);
        self.left_out_ns.store(seen.left_out_ns, Ordering::Relaxed);
    }

    pub(crate) fn load(&self) -> PreloadCost {
        PreloadCost {
            recorded: self.recorded.load(Ordering::Relaxed),
            recorded_ns: self.recorded_ns.load(Ordering::Relaxed),
            left_out: self.left_out.load(Ordering::Relaxed),
            left_out_ns: self.left_out_ns.load(Ordering::Relaxed),
        }
    }
}

impl PreloadCost {
    /// The cost of all operations, nanoseconds.
    pub(crate) fn took_ns(&self) -> u64 {
        self.recorded_ns.saturating_add(self.left_out_ns)
    }
}
