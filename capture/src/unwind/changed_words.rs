//! Words that several threads may wait for, found by the instruction before a tick: it has changed a word atomically, or used
//! one by a plain load or store in a cache line that other threads use, too.

use super::leaf::Leaf;
use super::shared_lines::SharedLines;
use engine::event::Access;
use probe_abi::{Header, LastInstruction, REGISTERS, SampleFlags, SampleReason};
use rustc_hash::{FxHashMap, FxHashSet};

/// Largest number of words of one instruction that get stacks of their own. An instruction that goes through thousands
/// of words does not wait for one of them, but would make thousands of stacks.
const WORDS: usize = 64;
/// Largest number of instructions whose words are followed.
const PLACES: usize = 4096;

/// The words that were found so far.
#[derive(Debug, Default)]
pub(super) struct ChangedWords {
    /// For each process and instruction: the words that it has used.
    known: FxHashMap<(u32, u64), FxHashSet<u64>>,
    lines: SharedLines,
}

impl ChangedWords {
    /// The leaf of a sample: the kernel, or the word that the thread's last instruction has used, or nothing.
    pub fn leaf(
        &mut self,
        header: &Header,
        next: u64,
        last: &LastInstruction,
        (reason, flags, call): (u8, u8, u16),
    ) -> Leaf {
        Leaf::of_kernel(reason, flags, call).unwrap_or_else(|| {
            let used = self.of(header, next, last, reason, flags);
            used.map_or(Leaf::Code, |(address, access)| Leaf::Changed(address, access))
        })
    }

    /// The word that the last instruction has used, if this instruction is followed.
    fn of(
        &mut self,
        header: &Header,
        next: u64,
        last: &LastInstruction,
        reason: u8,
        flags: u8,
    ) -> Option<(u64, Access)> {
        if reason != SampleReason::Tick as u8 || flags & SampleFlags::IN_KERNEL != 0 {
            return None;
        }
        let register = |number: u8| {
            let at = REGISTERS.iter().position(|other| *other == number)?;
            last.registers.get(at).copied()
        };
        let (address, access) = match symbols::changed_atomically(&last.code, next, register) {
            Some(address) => (address, Access::Atomic),
            None => {
                let used = symbols::last_access(&last.code, &last.next_code, next, register)?;
                let access = self.lines.used((header.pid, header.tid), header.time_ns, used)?;
                (used.address, access)
            }
        };
        if self.known.len() >= PLACES && !self.known.contains_key(&(header.pid, next)) {
            return None;
        }
        let words = self.known.entry((header.pid, next)).or_default();
        let is_kept = words.contains(&address) || words.len() < WORDS && words.insert(address);
        is_kept.then_some((address, access))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use probe_abi::CODE_BYTES;
    use zerocopy::FromZeros as _;

    const RDI: u8 = 5;

    /// `lock addl $1, (%rdi)`
    fn adding_at(address: u64) -> LastInstruction {
        let mut last = LastInstruction::new_zeroed();
        last.code[12..].copy_from_slice(&[0xf0, 0x83, 0x07, 0x01]);
        last.registers[REGISTERS.iter().position(|number| *number == RDI).expect("known")] = address;
        last
    }

    /// `movq (%rdi), %rax; addq $1, %rax; movq %rax, (%rdi)` in a thread that waits after the first of them.
    fn counting_at(address: u64, tid: u32) -> (Header, LastInstruction) {
        let mut last = LastInstruction { code: [0x90; CODE_BYTES], ..adding_at(address) };
        last.code[13..].copy_from_slice(&[0x48, 0x8b, 0x07]);
        last.next_code[..7].copy_from_slice(&[0x48, 0x83, 0xc0, 0x01, 0x48, 0x89, 0x07]);
        (Header { pid: 7, tid, ..Header::new_zeroed() }, last)
    }

    #[test]
    fn a_changed_word_is_known_only_at_ticks_in_user_space_and_for_some_words() {
        let mut words = ChangedWords::default();
        let tick = SampleReason::Tick as u8;
        let process = Header { pid: 7, ..Header::new_zeroed() };
        let mut of = |next: u64, address: u64, reason: u8, flags: u8| {
            words.of(&process, next, &adding_at(address), reason, flags)
        };
        let atomic = |address: u64| Some((address, Access::Atomic));
        assert_eq!(of(0x10, 0x5000, tick, 0), atomic(0x5000));
        assert_eq!(of(0x10, 0x5000, tick, SampleFlags::IN_KERNEL), None);
        assert_eq!(of(0x10, 0x5000, SampleReason::Block as u8, 0), None);
        for word in 1..WORDS as u64 {
            assert_eq!(of(0x10, 0x5000 + 8 * word, tick, 0), atomic(0x5000 + 8 * word));
        }
        assert_eq!(of(0x10, 0x9000, tick, 0), None);
        assert_eq!(of(0x10, 0x5000, tick, 0), atomic(0x5000));
        assert_eq!(of(0x18, 0x9000, tick, 0), atomic(0x9000), "another instruction");
    }

    /// Two random number generators whose states share a line: two CPUs take longer than one, and only these words show why.
    #[test]
    fn plain_stores_count_where_another_thread_uses_their_line() {
        let mut words = ChangedWords::default();
        let mut of = |address: u64, tid: u32| {
            let (header, last) = counting_at(address, tid);
            words.of(&header, 0x10, &last, SampleReason::Tick as u8, 0)
        };
        assert_eq!(of(0x5000, 1), None, "no other thread yet");
        assert_eq!(of(0x5008, 2), Some((0x5008, Access::Write)));
        assert_eq!(of(0x5000, 1), Some((0x5000, Access::Write)));
        assert_eq!(of(0x5048, 3), None, "another line");
        assert_eq!(of(0x5048, 3), None, "of one thread alone");
    }
}
