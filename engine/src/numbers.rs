//! Pseudo-random numbers from a seed.

/// SplitMix64 (Steele, Lea, Flood, "Fast splittable pseudorandom number generators", 2014): reproducible, not secret.
#[derive(Clone, Debug)]
pub struct Numbers(u64);

impl Numbers {
    /// Starts the sequence of pseudo-random numbers for this seed.
    pub fn new(seed: u64) -> Numbers {
        Numbers(seed)
    }

    /// The next 64 bits.
    pub fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `bound`; 0 if that is 0. (Slightly uneven for bounds near 2^64, which does not matter here.)
    pub fn below(&mut self, bound: u64) -> u64 {
        self.next_u64().checked_rem(bound).unwrap_or(0)
    }

    /// True in `of` cases out of `out_of`.
    #[cfg(any(test, feature = "synth"))]
    pub fn chance(&mut self, of: u64, out_of: u64) -> bool {
        self.below(out_of) < of
    }
}
