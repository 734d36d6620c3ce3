//! What the target records by itself: its part of what recording costs.

use std::sync::atomic::{AtomicU64, Ordering};

/// Synchronization operations that the library in the target has handled, and what that took of their
/// threads' time. Sums.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PreloadCost {
    /// Operations recorded.
    pub recorded: u64,
    /// What recording them took, nanoseconds.
    pub recorded_ns: u64,
    /// Operations left out, to keep to the budget.
    pub left_out: u64,
    /// What leaving them out took, nanoseconds.
    pub left_out_ns: u64,
}

/// The same, for several threads.
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
    /// What all of it took, nanoseconds.
    pub(crate) fn took_ns(&self) -> u64 {
        self.recorded_ns.saturating_add(self.left_out_ns)
    }
}
