//! Words that atomic instructions have changed just before a clock's tick, of which several threads may wait for one another.

use super::leaf::Leaf;
use probe_abi::{LastInstruction, REGISTERS, SampleFlags, SampleReason};
use rustc_hash::{FxHashMap, FxHashSet};

/// Words of one instruction that have stacks of their own. One that goes through thousands of words does not wait at one of them, and would
/// make as many stacks.
const WORDS: usize = 64;
/// Instructions that are looked at.
const PLACES: usize = 4096;

/// See the module.
#[derive(Debug, Default)]
pub(super) struct ChangedWords {
    /// By process and instruction.
    known: FxHashMap<(u32, u64), FxHashSet<u64>>,
}

impl ChangedWords {
    /// Whether a process's thread has changed a word before it came to this instruction, and whether it was in the kernel.
    pub fn leaf(
        &mut self,
        pid: u32,
        next: u64,
        last: &LastInstruction,
        (reason, flags, call): (u8, u8, u16),
    ) -> Leaf {
        Leaf::of_kernel(reason, flags, call).unwrap_or_else(|| {
            match self.of(pid, next, last, reason, flags) {
                0 => Leaf::Code,
                address => Leaf::Changed(address),
            }
        })
    }

    /// The word that it has changed; 0: none, or none that is looked at.
    fn of(&mut self, pid: u32, next: u64, last: &LastInstruction, reason: u8, flags: u8) -> u64 {
        if reason != SampleReason::Tick as u8 || flags & SampleFlags::IN_KERNEL != 0 {
            return 0;
        }
        let register = |number: u8| {
            let at = REGISTERS.iter().position(|other| *other == number)?;
            last.registers.get(at).copied()
        };
        let Some(address) = symbols::changed_atomically(&last.code, next, register) else { return 0 };
        if self.known.len() >= PLACES && !self.known.contains_key(&(pid, next)) {
            return 0;
        }
        let words = self.known.entry((pid, next)).or_default();
        if words.contains(&address) || words.len() < WORDS && words.insert(address) { address } else { 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use zerocopy::FromZeros as _;

    const RDI: u8 = 5;

    /// `lock addl $1, (%rdi)`
    fn adding_at(address: u64) -> LastInstruction {
        let mut last = LastInstruction::new_zeroed();
        last.code[12..].copy_from_slice(&[0xf0, 0x83, 0x07, 0x01]);
        last.registers[REGISTERS.iter().position(|number| *number == RDI).expect("known")] = address;
        last
    }

    #[test]
    fn only_a_tick_in_user_space_has_changed_a_word_and_only_some_are_kept() {
        let mut words = ChangedWords::default();
        let tick = SampleReason::Tick as u8;
        assert_eq!(words.of(7, 0x10, &adding_at(0x5000), tick, 0), 0x5000);
        assert_eq!(words.of(7, 0x10, &adding_at(0x5000), tick, SampleFlags::IN_KERNEL), 0);
        assert_eq!(words.of(7, 0x10, &adding_at(0x5000), SampleReason::Block as u8, 0), 0);
        for word in 1..WORDS as u64 {
            assert_eq!(words.of(7, 0x10, &adding_at(0x5000 + 8 * word), tick, 0), 0x5000 + 8 * word);
        }
        assert_eq!(words.of(7, 0x10, &adding_at(0x9000), tick, 0), 0);
        assert_eq!(words.of(7, 0x10, &adding_at(0x5000), tick, 0), 0x5000);
        assert_eq!(words.of(7, 0x18, &adding_at(0x9000), tick, 0), 0x9000, "another instruction");
    }
}
