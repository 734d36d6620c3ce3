//! Finds which word of memory the instruction before an address has changed atomically.
//!
//! To execute an atomic instruction, a CPU needs the word's cache line for itself, and waits until other CPUs have
//! released the line (Intel SDM, volume 3, section 10.1). So threads that change the same cache line are mostly sampled
//! at the instruction after the atomic one.

use iced_x86::{Decoder, DecoderOptions, Instruction, Mnemonic, OpKind, Register};

/// Length of the shortest instruction with a prefix and an operand in memory, in bytes.
const SHORTEST: usize = 2;

/// The address of the word that the instruction before `next` has changed atomically. `code` ends at `next`. `register`
/// gets a DWARF register number and returns the value of that general register after the instruction. `None`: the
/// instruction is not atomic, a register's value is not known, or the operand is relative to the stack pointer (a
/// fence) or to a segment register.
pub fn changed_atomically(code: &[u8], next: u64, register: impl Fn(u8) -> Option<u64>) -> Option<u64> {
    // Of all atomic instructions that end at `next`, the longest is the right one: the shorter ones are the same
    // instruction without its prefixes.
    let instruction = (SHORTEST..=code.len()).rev().find_map(|length| ending(code, length, next))?;
    address_of(&instruction, register)
}

/// The address of an instruction's operand in memory. `None`: there is no such operand, a register's value is not
/// known, or the operand is relative to the stack pointer or has a segment prefix.
pub(super) fn address_of(instruction: &Instruction, register: impl Fn(u8) -> Option<u64>) -> Option<u64> {
    let base = instruction.memory_base();
    if matches!(base, Register::RSP | Register::ESP) || instruction.segment_prefix() != Register::None {
        return None;
    }
    let memory = (0..instruction.op_count()).find(|at| instruction.op_kind(*at) == OpKind::Memory)?;
    let value = |register_of: Register, _: usize, _: usize| match register_of {
        // The base address of every segment except FS and GS is 0.
        Register::CS | Register::DS | Register::ES | Register::SS => Some(0),
        other => register(dwarf(other.full_register())?),
    };
    instruction.virtual_address(memory, 0, value).filter(|address| *address != 0)
}

/// Decodes the last `length` bytes of the code, and returns the instruction if it is atomic.
fn ending(code: &[u8], length: usize, next: u64) -> Option<Instruction> {
    let bytes = code.get(code.len().checked_sub(length)?..)?;
    let mut decoder = Decoder::with_ip(64, bytes, next.wrapping_sub(length as u64), DecoderOptions::NONE);
    let instruction = decoder.decode();
    let is_atomic = instruction.has_lock_prefix() || instruction.mnemonic() == Mnemonic::Xchg;
    (instruction.len() == length && !instruction.is_invalid() && is_atomic).then_some(instruction)
}

/// The DWARF number of a general register (System V ABI for AMD64, figure 3.36).
pub(super) fn dwarf(register: Register) -> Option<u8> {
    Some(match register {
        Register::RAX => 0,
        Register::RDX => 1,
        Register::RCX => 2,
        Register::RBX => 3,
        Register::RSI => 4,
        Register::RDI => 5,
        Register::RBP => 6,
        Register::R8 => 8,
        Register::R9 => 9,
        Register::R10 => 10,
        Register::R11 => 11,
        Register::R12 => 12,
        Register::R13 => 13,
        Register::R14 => 14,
        Register::R15 => 15,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The value of each register is 0x1000 times its number, so that an address computed from a wrong register is
    /// noticed.
    fn changed(code: &[u8]) -> Option<u64> {
        let mut all = vec![0x90; 16 - code.len()];
        all.extend_from_slice(code);
        changed_atomically(&all, 0x40_0010, |number| Some(0x1000 * u64::from(number)))
    }

    #[test]
    fn the_word_that_an_atomic_instruction_changes_has_its_address() {
        assert_eq!(changed(&[0xf0, 0x83, 0x07, 0x01]), Some(0x5000), "lock addl $1, (%rdi)");
        assert_eq!(changed(&[0xf0, 0x0f, 0xc1, 0x50, 0x08]), Some(8), "lock xadd %edx, 8(%rax)");
        assert_eq!(
            changed(&[0xf0, 0x4d, 0x0f, 0xb1, 0x14, 0xc8]),
            Some(0x18000),
            "lock cmpxchg %r10, (%r8,%rcx,8)"
        );
        assert_eq!(changed(&[0x48, 0x87, 0x06]), Some(0x4000), "xchg %rax, (%rsi)");
        assert_eq!(changed(&[0xf0, 0xff, 0x05, 0x10, 0, 0, 0]), Some(0x40_0020), "lock incl 0x10(%rip)");
    }

    #[test]
    fn plain_instructions_and_fences_change_no_word_atomically() {
        assert_eq!(changed(&[0x83, 0x07, 0x01]), None, "addl $1, (%rdi)");
        assert_eq!(changed(&[0xf0, 0x83, 0x0c, 0x24, 0x00]), None, "lock orl $0, (%rsp)");
        assert_eq!(changed(&[0x64, 0xf0, 0x83, 0x07, 0x01]), None, "in a thread's own segment");
        assert_eq!(changed(&[0x87, 0xd8]), None, "xchg %ebx, %eax");
        assert_eq!(changed_atomically(&[], 0, |_| None), None);
        assert_eq!(changed_atomically(&[0xf0, 0x83, 0x07, 0x01], 4, |_| None), None);
    }
}
