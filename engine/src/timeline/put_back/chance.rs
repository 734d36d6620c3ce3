//! Chance that is the same every time.

/// Numbers that look like chance and are the same every time (splitmix64; Steele, Lea, Flood 2014).
pub(super) struct Chance(pub(super) u64);

impl Chance {
    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number from 0, below `count`.
    pub(super) fn below(&mut self, count: usize) -> usize {
        let wide = u128::from(self.next()) * count as u128;
        usize::try_from(wide >> 64).unwrap_or(0)
    }
}
