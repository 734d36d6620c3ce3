//! Chance that is the same every time.

use crate::numbers::Numbers;

/// Numbers that look like chance and are the same every time.
pub(super) struct Chance(pub(super) Numbers);

impl Chance {
    /// A number from 0, below `count`.
    pub(super) fn below(&mut self, count: usize) -> usize {
        let wide = u128::from(self.0.next_u64()) * count as u128;
        usize::try_from(wide >> 64).unwrap_or(0)
    }
}
