//! Several CPU counts side by side, and numbers scaled by the CPU count.

use crate::cpus::Cpus;
use crate::time::Ticks;

/// Number of CPU counts that one sweep computes.
pub(super) const LANES: usize = 8;

/// P as the factor of scaled numbers. More processors than threads are as good as unlimited.
pub(super) fn scale(cpus: Cpus, threads: usize) -> i64 {
    match cpus {
        Cpus::Count(count) => i64::from(count.get()),
        Cpus::Infinite => i64::try_from(threads).unwrap_or(i64::MAX - 1) + 1,
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
    /// The value in nanoseconds, rounded to a double; for output only.
    pub fn as_ns_f64(self) -> f64 {
        let unit = i128::from(self.scale) * i128::from(Ticks::PER_NS);
        // The integer part and the remainder are divided separately, which is exact for integers beyond 2^53 / unit.
        (self.value / unit) as f64 + (self.value % unit) as f64 / unit as f64
    }
}

/// An integer for sums. The code that chooses a width must prove that results fit; intermediate values may wrap around.
pub(super) trait Sum: Copy + Default {
    /// The lower bits of the number.
    fn from_wide(number: i128) -> Self;
    fn to_wide(self) -> i128;
    fn plus(self, other: Self) -> Self;
    fn minus(self, other: Self) -> Self;
    fn times(self, other: Self) -> Self;
}

macro_rules! sum {
    ($number:ty) => {
        impl Sum for $number {
            #[inline]
            fn from_wide(number: i128) -> Self {
                number as $number
            }
            #[inline]
            fn to_wide(self) -> i128 {
                i128::from(self)
            }
            #[inline]
            fn plus(self, other: Self) -> Self {
                self.wrapping_add(other)
            }
            #[inline]
            fn minus(self, other: Self) -> Self {
                self.wrapping_sub(other)
            }
            #[inline]
            fn times(self, other: Self) -> Self {
                self.wrapping_mul(other)
            }
        }
    };
}

sum!(i32);
sum!(i64);
sum!(i128);

/// A number for each of several CPU counts.
pub(super) type Lane<S, const N: usize> = [S; N];

/// Adds `from` to `to`.
#[inline]
pub(super) fn add<S: Sum, const N: usize>(to: &mut Lane<S, N>, from: &Lane<S, N>) {
    for (to, from) in to.iter_mut().zip(from) {
        *to = to.plus(*from);
    }
}

/// Subtracts `from` from `to`.
#[inline]
pub(super) fn subtract<S: Sum, const N: usize>(to: &mut Lane<S, N>, from: &Lane<S, N>) {
    for (to, from) in to.iter_mut().zip(from) {
        *to = to.minus(*from);
    }
}
