//! Random numbers that are the same in each analysis.

use crate::numbers::Numbers;

/// Pseudo-random numbers from a fixed seed.
pub(super) struct Chance(pub(super) Numbers);

impl Chance {
    /// A number from 0 up to, but without, `count`.
    pub(super) fn below(&mut self, count: usize) -> usize {
        let wide = u128::from(self.0.next_u64()) * count as u128;
        usize::try_from(wide >> 64).unwrap_or(0)
    }
}
