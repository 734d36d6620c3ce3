//! Finds which word of memory the instruction before an address has read or written by a plain load or store.
//!
//! A load waits for its cache line, so a sample finds the thread at the instruction after it. A store goes into a
//! buffer and does not wait. So a thread that changes a word waits at the load; the code after the load shows whether
//! it stores to the same line.

use super::atomic_access::{address_of, dwarf};
use iced_x86::{
    Decoder, DecoderOptions, FlowControl, Instruction, InstructionInfoFactory, OpAccess, Register,
};

/// Bytes of a cache line.
const LINE: u64 = 64;
/// Largest number of instructions that are decoded after a load.
const MOST_BEHIND: usize = 12;

/// A plain access of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryAccess {
    /// Address of the word. Never 0.
    pub address: u64,
    /// Whether the instruction reads the word.
    pub reads: bool,
    /// Whether the instruction writes the word, or a later instruction writes to the same cache line before the next
    /// branch.
    pub writes: bool,
}

/// The memory access of the instruction before `next`. `before` is the code up to `next`; `behind` is the code from
/// `next` on, and may be empty. `register` gets a DWARF register number and returns the present value of that general
/// register. `None`: the instruction does not access memory plainly, its address can no longer be computed, or the
/// address is relative to the stack pointer or has a segment prefix.
pub fn last_access(
    before: &[u8],
    behind: &[u8],
    next: u64,
    register: impl Fn(u8) -> Option<u64>,
) -> Option<MemoryAccess> {
    let instruction = last(before, next)?;
    if instruction.has_lock_prefix() || instruction.flow_control() != FlowControl::Next {
        return None;
    }
    let mut facts = InstructionInfoFactory::new();
    let address = address_of(&instruction, &register)?;
    let (access, changed) = effects(&instruction, &mut facts);
    let (reads, writes) = (does_read(access?), does_write(access?));
    if !(reads || writes) || uses_any(&instruction, changed) {
        return None;
    }
    let writes = writes || is_line_stored(behind, next, address, &mut facts, &register);
    Some(MemoryAccess { address, reads, writes })
}

/// The last instruction of the code. x86 code cannot be decoded backwards, but decoding from any byte soon arrives at
/// true instruction borders. So the last instruction is the one that more than half of the early starting points lead
/// to.
fn last(code: &[u8], next: u64) -> Option<Instruction> {
    // Code that could not be read consists of zeros.
    if code.iter().all(|byte| *byte == 0) {
        return None;
    }
    // For each byte, where the last instruction begins if decoding begins at this byte. `None`: decoding fails or runs
    // over the end.
    let mut lasts: Vec<Option<usize>> = vec![None; code.len()];
    for from in (0..code.len()).rev() {
        let end = from + at(code, from, next).map_or(0, |instruction| instruction.len());
        let last = if end == code.len() { Some(from) } else { lasts.get(end).copied().flatten() };
        if let Some(place) = lasts.get_mut(from) {
            *place = last.filter(|_| end > from);
        }
    }
    // Starting points near the end are ignored: decoding from them may not arrive at true instruction borders.
    let met = lasts.get(..=code.len() / 2)?;
    let votes = |last: usize| met.iter().filter(|other| **other == Some(last)).count();
    let all = met.iter().flatten().count();
    let last = met.iter().flatten().copied().find(|last| 2 * votes(*last) > all)?;
    at(code, last, next)
}

/// The instruction that begins at this byte.
fn at(code: &[u8], from: usize, next: u64) -> Option<Instruction> {
    let bytes = code.get(from..)?;
    let start = next.wrapping_sub(bytes.len() as u64);
    let instruction = Decoder::with_ip(64, bytes, start, DecoderOptions::NONE).decode();
    (!instruction.is_invalid()).then_some(instruction)
}

/// Whether the code writes to the cache line of this address before it branches.
fn is_line_stored(
    code: &[u8],
    start: u64,
    address: u64,
    facts: &mut InstructionInfoFactory,
    register: &impl Fn(u8) -> Option<u64>,
) -> bool {
    // Registers whose values have changed since the time for which `register` is valid.
    let mut changed = 0;
    for instruction in Decoder::with_ip(64, code, start, DecoderOptions::NONE).into_iter().take(MOST_BEHIND) {
        if instruction.is_invalid() || instruction.flow_control() != FlowControl::Next {
            return false;
        }
        let (access, also_changed) = effects(&instruction, facts);
        if access.is_some_and(does_write) && !uses_any(&instruction, changed) {
            let stored = address_of(&instruction, register);
            if stored.is_some_and(|stored| stored / LINE == address / LINE) {
                return true;
            }
        }
        changed |= also_changed;
    }
    false
}

/// How an instruction uses its operand in memory (`None` if there is none, or several), and which general registers it
/// changes, as one bit for each DWARF number.
fn effects(instruction: &Instruction, facts: &mut InstructionInfoFactory) -> (Option<OpAccess>, u32) {
    let info = facts.info(instruction);
    let access = match info.used_memory() {
        [one] => Some(one.access()),
        _ => None,
    };
    let changed = info.used_registers().iter().filter(|used| does_write(used.access()));
    (access, changed.fold(0, |changed, used| changed | bit(used.register())))
}

/// Whether the instruction computes its address from one of these registers.
fn uses_any(instruction: &Instruction, registers: u32) -> bool {
    (bit(instruction.memory_base()) | bit(instruction.memory_index())) & registers != 0
}

fn bit(register: Register) -> u32 {
    dwarf(register.full_register()).map_or(0, |number| 1 << number)
}

pub(super) fn does_read(access: OpAccess) -> bool {
    matches!(access, OpAccess::Read | OpAccess::CondRead | OpAccess::ReadWrite | OpAccess::ReadCondWrite)
}

pub(super) fn does_write(access: OpAccess) -> bool {
    matches!(access, OpAccess::Write | OpAccess::CondWrite | OpAccess::ReadWrite | OpAccess::ReadCondWrite)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NEXT: u64 = 0x40_0010;

    /// The value of each register is 0x1000 times its number plus 8, so that an address computed from a wrong register
    /// is noticed.
    fn access(before: &[u8], behind: &[u8]) -> Option<(u64, bool, bool)> {
        let mut code = vec![0x90; 16 - before.len()];
        code.extend_from_slice(before);
        let found = last_access(&code, behind, NEXT, |number| Some(0x1000 * u64::from(number) + 8));
        found.map(|found| (found.address, found.reads, found.writes))
    }

    #[test]
    fn a_load_a_store_and_a_change_have_their_address() {
        assert_eq!(access(&[0x8b, 0x07], &[]), Some((0x5008, true, false)), "mov (%rdi), %eax");
        assert_eq!(access(&[0x89, 0x47, 0x10], &[]), Some((0x5018, false, true)), "mov %eax, 16(%rdi)");
        assert_eq!(
            access(&[0x48, 0x83, 0x04, 0xf8, 0x01], &[]),
            Some((8 + 8 * 0x5008, true, true)),
            "addq $1, (%rax,%rdi,8)"
        );
        assert_eq!(
            access(&[0x48, 0x8b, 0x15, 0x20, 0, 0, 0], &[]),
            Some((NEXT + 0x20, true, false)),
            "mov 0x20(%rip), %rdx"
        );
        assert_eq!(
            access(&[0xf3, 0x0f, 0x10, 0x06], &[]),
            Some((0x4008, true, false)),
            "movss (%rsi), %xmm0"
        );
    }

    #[test]
    fn unknown_addresses_and_no_memory_are_no_access() {
        assert_eq!(access(&[0x48, 0x8b, 0x00], &[]), None, "mov (%rax), %rax: the address is gone");
        assert_eq!(access(&[0x8b, 0x44, 0x24, 0x08], &[]), None, "mov 8(%rsp), %eax");
        assert_eq!(access(&[0x64, 0x8b, 0x07], &[]), None, "in a thread's own segment");
        assert_eq!(access(&[0x48, 0x8d, 0x07], &[]), None, "lea (%rdi), %rax");
        assert_eq!(access(&[0xf0, 0x83, 0x07, 0x01], &[]), None, "lock addl $1, (%rdi)");
        assert_eq!(access(&[0xf3, 0xa4], &[]), None, "rep movsb");
        assert_eq!(access(&[0x0f, 0x1f, 0x44, 0, 0], &[]), None, "nopl (%rax,%rax)");
        assert_eq!(access(&[0xff, 0x17], &[]), None, "call *(%rdi)");
        assert_eq!(access(&[0x01, 0xd0], &[]), None, "add %edx, %eax");
    }

    /// As in a random number generator, which reads its state, computes, and stores the state several instructions
    /// later.
    #[test]
    fn a_load_counts_as_a_write_if_the_next_code_stores_to_its_line() {
        let load = [0x8b, 0x07]; // mov (%rdi), %eax
        let store = [0xc1, 0xe0, 0x0d, 0x31, 0xd0, 0x89, 0x07]; // shl $13, %eax; xor %edx, %eax; mov %eax, (%rdi)
        assert_eq!(access(&load, &store), Some((0x5008, true, true)));
        let near = [0x89, 0x47, 0x08]; // mov %eax, 8(%rdi)
        assert_eq!(access(&load, &near), Some((0x5008, true, true)));
        let another_line = [0x89, 0x47, 0x40]; // mov %eax, 64(%rdi)
        assert_eq!(access(&load, &another_line), Some((0x5008, true, false)));
        let moved = [0x48, 0xff, 0xc7, 0x89, 0x07]; // inc %rdi; mov %eax, (%rdi)
        assert_eq!(access(&load, &moved), Some((0x5008, true, false)));
        let after_branch = [0x74, 0x02, 0x89, 0x07]; // je +2; mov %eax, (%rdi)
        assert_eq!(access(&load, &after_branch), Some((0x5008, true, false)));
        let cut_off = [0x89];
        assert_eq!(access(&load, &cut_off), Some((0x5008, true, false)));
    }

    /// The code is `mov 0x2dc9(%rip), %r8; add $1, %rdi; mov (%rdx,%rdi,8), %rax`. The last bytes alone also decode as
    /// `mov (%rdx,%rdi,8), %eax`.
    #[test]
    fn the_last_instruction_is_found_among_instructions_of_any_length() {
        let code = [0xc9, 0x2d, 0, 0, 0x48, 0x83, 0xc7, 0x01, 0x0f, 0x1f, 0x40, 0x00, 0x48, 0x8b, 0x04, 0xfa];
        let found = last_access(&code, &[], NEXT, |number| Some(u64::from(number) << 12));
        assert_eq!(found, Some(MemoryAccess { address: 0x1000 + 8 * 0x5000, reads: true, writes: false }));
    }

    /// The code is `nopw; call; mov 0x2dec(%rip), %rdx`. Here wrong starting points reach the end as often as true
    /// ones.
    #[test]
    fn instruction_beginnings_close_to_the_end_do_not_count() {
        let code = [0x1f, 0x44, 0, 0, 0xe8, 0x9e, 0xff, 0xff, 0xff, 0x48, 0x8b, 0x15, 0xec, 0x2d, 0, 0];
        let found = last_access(&code, &[], NEXT, |number| Some(u64::from(number) << 12));
        assert_eq!(found, Some(MemoryAccess { address: NEXT + 0x2dec, reads: true, writes: false }));
    }

    #[test]
    fn any_bytes_as_code_give_an_access_or_none() {
        assert_eq!(last_access(&[], &[], NEXT, |_| Some(8)), None);
        assert_eq!(last_access(&[0; 16], &[], NEXT, |_| Some(8)), None, "not readable");
        assert_eq!(last_access(&[0x8b, 0x07], &[], NEXT, |_| None), None, "no registers");
        let mut seed = 0xdead_beef_cafe_f00d_u64;
        for _ in 0..20_000 {
            let mut random = || {
                seed ^= seed << 13;
                seed ^= seed >> 7;
                seed ^= seed << 17;
                seed
            };
            let bytes: Vec<u8> = (0..8).flat_map(|_| random().to_le_bytes()).collect();
            let (before, behind) = bytes.split_at(16);
            let (next, value) = (random(), random());
            let found = last_access(before, behind, next, |number| Some(value ^ u64::from(number)));
            assert!(found.is_none_or(|found| found.address != 0 && (found.reads || found.writes)));
        }
    }
}
