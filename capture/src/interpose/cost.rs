//! The CPU time that recording operations costs the target's threads. The library measures some operations where they are
//! called, with the caches as they are there; all others are assumed to cost the same.

/// Assumed cost of an operation while none has been measured, nanoseconds: too little to matter.
const UNMEASURED_NS: f64 = 100.0;

/// Sums of operations and their cost, over one ring or over all rings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Sums {
    /// Records written.
    pub records: u64,
    /// Number of records whose cost was measured.
    pub measured: u64,
    /// Summed cost of the measured records, nanoseconds.
    pub took_ns: u64,
}

impl Sums {
    /// Moves up to `now` and returns the increase. The target can make a sum smaller than before: a decrease counts as zero,
    /// and the way back up to the old value counts as zero, too.
    pub fn advance(&mut self, now: Sums) -> Sums {
        let more = Sums {
            records: now.records.saturating_sub(self.records),
            measured: now.measured.saturating_sub(self.measured),
            took_ns: now.took_ns.saturating_sub(self.took_ns),
        };
        *self = Sums {
            records: self.records.max(now.records),
            measured: self.measured.max(now.measured),
            took_ns: self.took_ns.max(now.took_ns),
        };
        more
    }

    /// The sums of two rings together.
    pub fn plus(self, other: Sums) -> Sums {
        Sums {
            records: self.records.saturating_add(other.records),
            measured: self.measured.saturating_add(other.measured),
            took_ns: self.took_ns.saturating_add(other.took_ns),
        }
    }
}

/// The cost account. Its total never decreases, so the difference of two readings is the cost in between.
#[derive(Clone, Copy, Debug)]
pub(super) struct OperationCosts {
    operations: u64,
    each_ns: f64,
    spent_ns: f64,
}

impl OperationCosts {
    pub fn new() -> OperationCosts {
        OperationCosts { operations: 0, each_ns: UNMEASURED_NS, spent_ns: 0.0 }
    }

    /// Adds the increase since the last call.
    pub fn add(&mut self, more: Sums) {
        if more.measured > 0 {
            self.each_ns = more.took_ns as f64 / more.measured as f64;
        }
        self.operations = self.operations.saturating_add(more.records);
        self.spent_ns += more.records as f64 * self.each_ns;
    }

    /// Number of operations so far, and their total cost, nanoseconds.
    pub fn total(&self) -> (u64, u64) {
        (self.operations, self.spent_ns as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sums(records: u64, measured: u64, took_ns: u64) -> Sums {
        Sums { records, measured, took_ns }
    }

    #[test]
    fn an_operation_s_cost_applies_to_the_stretch_it_was_measured_in() {
        let mut costs = OperationCosts::new();
        let mut total = |more| {
            costs.add(more);
            costs.total()
        };
        assert_eq!(total(sums(10, 0, 0)), (10, 1_000));
        assert_eq!(total(sums(1_000, 2, 400)), (1_010, 201_000));
        // More expensive from here on; earlier costs do not change.
        assert_eq!(total(sums(100, 1, 500)), (1_110, 251_000));
        // Without a new measurement, the last cost per operation applies.
        assert_eq!(total(sums(10, 0, 0)), (1_120, 256_000));
    }

    #[test]
    fn operation_sums_that_decrease_are_counted_once() {
        let mut seen = Sums::default();
        assert_eq!(seen.advance(sums(100, 10, 2_000)), sums(100, 10, 2_000));
        assert_eq!(seen.advance(sums(50, 0, 0)), Sums::default());
        assert_eq!(seen.advance(sums(110, 11, 2_100)), sums(10, 1, 100));
        assert_eq!(sums(u64::MAX, 1, 1).plus(sums(1, 1, 1)), sums(u64::MAX, 2, 2));
        let mut costs = OperationCosts::new();
        costs.add(sums(u64::MAX, 1, u64::MAX));
        costs.add(sums(u64::MAX, 1, u64::MAX));
        assert_eq!(costs.total(), (u64::MAX, u64::MAX));
    }
}
