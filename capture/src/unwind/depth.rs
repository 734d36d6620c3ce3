//! Decides how much of a process's stacks is copied.
//!
//! This method is longpole's own. Copying and reading sixteen pieces of a thousand bytes costs more than all the rest
//! of a sample, and most stacks need two or three pieces. After some whole stacks, the programs copy as much as the
//! deepest of them needed and a quarter more. When a stack is cut off because of that, everything is copied again, for
//! twice as many stacks.

use probe_abi::{COPY_PIECE, COPY_PIECES};

/// Number of complete stacks that are examined at first; it doubles each time a stack is cut off.
const FIRST_LOOK: u64 = 64;
const MOST_DOUBLINGS: u32 = 12;

/// How deep the stacks of one process are, to decide how many bytes of them are copied.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Depth {
    /// Bytes of the deepest complete stack.
    deepest: usize,
    /// Whole stacks since everything is copied again.
    whole: u64,
    /// The present setting: pieces that the programs copy; 0: all.
    told: usize,
    /// Number of times that the setting cut a stack off.
    cut: u32,
}

impl Depth {
    /// Number of pieces that the programs must copy; 0: as many as they can.
    pub fn pieces(&self) -> u32 {
        u32::try_from(self.told).unwrap_or(0)
    }

    /// Notes a complete stack that needed this number of bytes of its copy. Returns whether the kernel programs need a
    /// new setting.
    pub fn whole(&mut self, bytes: usize) -> bool {
        self.deepest = self.deepest.max(bytes);
        if self.told != 0 {
            return false;
        }
        self.whole += 1;
        if self.whole < FIRST_LOOK << self.cut.min(MOST_DOUBLINGS) {
            return false;
        }
        let enough = self.deepest.saturating_add(self.deepest / 4).div_ceil(COPY_PIECE) + 1;
        if enough >= COPY_PIECES {
            // A setting would save nothing; this is checked again after the same number of stacks.
            self.whole = 0;
            return false;
        }
        self.told = enough;
        true
    }

    /// Notes a stack that continued after its copy of this number of bytes. Returns whether the kernel programs need a
    /// new setting.
    pub fn cut(&mut self, copied: usize) -> bool {
        if self.told == 0 || copied < self.told * COPY_PIECE {
            // The copy ended because the mapped memory ended, or it was made before the last setting.
            return false;
        }
        (self.told, self.whole, self.cut) = (0, 0, self.cut.saturating_add(1));
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stacks_are_copied_as_deep_as_was_enough_and_some_more() {
        let mut depth = Depth::default();
        let told = (0..FIRST_LOOK).map(|number| depth.whole(if number == 5 { 2_000 } else { 300 }));
        assert_eq!(told.filter(|&new| new).count(), 1);
        assert_eq!(depth.pieces(), 4);
        assert!(!depth.whole(4_000));
    }

    #[test]
    fn a_deeper_stack_makes_the_copy_whole_for_longer_each_time() {
        let mut depth = Depth::default();
        for round in 0..4 {
            let looked = (1..).find(|_| depth.whole(300)).expect("some time");
            assert_eq!(looked, FIRST_LOOK << round);
            assert_eq!(depth.pieces(), 2);
            // A copy that ended earlier, because memory ended, is no reason.
            assert!(!depth.cut(COPY_PIECE));
            assert!(depth.cut(2 * COPY_PIECE));
            assert_eq!(depth.pieces(), 0);
            assert!(!depth.cut(2 * COPY_PIECE));
        }
    }

    #[test]
    fn a_program_with_deep_stacks_has_them_copied_whole() {
        let mut depth = Depth::default();
        assert!((0..10 * FIRST_LOOK).all(|_| !depth.whole(13_000)));
        assert_eq!(depth.pieces(), 0);
    }
}
