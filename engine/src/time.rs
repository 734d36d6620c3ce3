//! Time as a type. Recorded time is nanoseconds of one clock; program time is picoseconds, so that the
//! fractional lengths of a hand-written program stay exact integers.

/// A point in time: nanoseconds of the recording's clock (`CLOCK_MONOTONIC`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(pub u64);

impl Timestamp {
    /// Nanoseconds from `earlier` to `self`; `None` if `earlier` is later.
    pub fn since(self, earlier: Timestamp) -> Option<Nanos> {
        self.0.checked_sub(earlier.0).map(Nanos)
    }
}

/// A length of recorded time in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Nanos(pub u64);

/// A length of program time, or a point on a schedule counted from its start, in picoseconds. The sum of all
/// lengths of a program fits in an `i64` (106 days): [`crate::program::Program`] checks it where it is built.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ticks(pub u64);

impl Ticks {
    /// Ticks in one nanosecond.
    pub const PER_NS: u64 = 1_000;
    /// The longest time of a program: sums of lengths up to this one cannot overflow an `i64`. It is a multiple of a
    /// nanosecond, so that a length cut to it can be written and read back exactly.
    pub const MAX_TOTAL: u64 = i64::MAX as u64 / Ticks::PER_NS * Ticks::PER_NS;

    /// An integer number of nanoseconds as ticks; at most [`Ticks::MAX_TOTAL`].
    pub const fn from_ns(ns: u64) -> Ticks {
        let ticks = ns.saturating_mul(Ticks::PER_NS);
        Ticks(if ticks > Ticks::MAX_TOTAL { Ticks::MAX_TOTAL } else { ticks })
    }

    /// The length times a factor, exact for 1; negative factors count as 0. Lengths stay below 2⁶³, so the conversion to a
    /// double is off by a few ticks (picoseconds) at most.
    pub(crate) fn scaled(self, factor: f64) -> Ticks {
        if factor == 1.0 {
            return self;
        }
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "not negative; the cast saturates"
        )]
        let scaled = (self.0 as f64 * factor.max(0.0)).round() as u64;
        Ticks(scaled.min(Ticks::MAX_TOTAL))
    }

    /// The nearest integer number of nanoseconds. In a sequence of stretches, round the points in time, not the
    /// lengths: only then do neighbouring stretches still touch, and their lengths add up.
    pub fn nearest_ns(self) -> u64 {
        self.0.saturating_add(Ticks::PER_NS / 2) / Ticks::PER_NS
    }

    /// Nanoseconds, possibly fractional; for output only.
    pub fn as_ns_f64(self) -> f64 {
        self.0 as f64 / Ticks::PER_NS as f64
    }
}
