//! Several CPU counts side by side, and numbers scaled by the CPU count.

use crate::report::Cpus;
use crate::time::Ticks;

/// CPU counts handled in one sweep.
pub(super) const LANES: usize = 8;

/// P·weight for [`LANES`] CPU counts.
pub(super) type Lane = [i64; LANES];

/// P·weight·length for [`LANES`] CPU counts, in ticks.
pub(super) type WideLane = [i128; LANES];

/// A processor count that no number of threads reaches (threads are numbered with 32 bits): as good as unlimited.
const UNLIMITED: i64 = 1 << 32;

/// P as the number to scale with.
pub(super) fn scale(cpus: Cpus) -> i64 {
    match cpus {
        Cpus::Count(count) => i64::from(count.get()),
        Cpus::Infinite => UNLIMITED,
    }
}

/// A number of ticks multiplied by a CPU count, exact.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scaled {
    /// P · ticks.
    pub value: i128,
    /// P.
    pub scale: i64,
}

impl Scaled {
    /// The number itself in nanoseconds; for output only.
    pub fn as_ns_f64(self) -> f64 {
        let unit = i128::from(self.scale) * i128::from(Ticks::PER_NS);
        // Whole and remaining part apart: exact for whole nanoseconds beyond 2^53 / unit.
        (self.value / unit) as f64 + (self.value % unit) as f64 / unit as f64
    }
}

/// Adds `from` to `to`. Sums of P·weight stay below threads · instants + P, far inside an `i64`.
#[inline]
pub(super) fn add(to: &mut Lane, from: &Lane) {
    for (to, from) in to.iter_mut().zip(from) {
        *to = to.wrapping_add(*from);
    }
}

/// Adds weight · length. The lengths of a program add up to less than 2^63 and P·weight is below 2^63: the sum of
/// the products is below 2^127 for every program that fits into memory.
#[inline]
pub(super) fn add_product(to: &mut WideLane, weights: &Lane, length: u64) {
    for (to, weight) in to.iter_mut().zip(weights) {
        *to = to.wrapping_add(i128::from(*weight).wrapping_mul(i128::from(length)));
    }
}

/// Adds `from` to `to`; bounded as in [`add_product`].
#[inline]
pub(super) fn add_wide(to: &mut WideLane, from: &WideLane) {
    for (to, from) in to.iter_mut().zip(from) {
        *to = to.wrapping_add(*from);
    }
}

/// Takes `from` away from `to`; bounded as in [`add_product`].
#[inline]
pub(super) fn subtract_wide(to: &mut WideLane, from: &WideLane) {
    for (to, from) in to.iter_mut().zip(from) {
        *to = to.wrapping_sub(*from);
    }
}
