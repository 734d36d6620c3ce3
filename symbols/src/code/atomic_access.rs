//! Finds which word of memory an atomic instruction has just changed.
//!
//! To execute an atomic instruction, a CPU needs the cache line for itself, and waits until other CPUs have released it
//! (Intel SDM, volume 3, section 10.1). So samples of threads that change one line lie on the instruction after the
//! atomic one.

use iced_x86::{Decoder, DecoderOptions, Instruction, Mnemonic, OpKind, Register};

/// Length of the shortest instruction with an operand in memory and a prefix, bytes.
const SHORTEST: usize = 2;

/// The address of the word that the instruction before `next` has changed atomically. `code` ends at `next`; `register`
/// returns a general register's value after the instruction, by DWARF number. `None`: the instruction is not atomic, its
/// operand is relative to the stack pointer (a fence) or to a segment register, or a register is not known.
pub fn changed_atomically(code: &[u8], next: u64, register: impl Fn(u8) -> Option<u64>) -> Option<u64> {
    // The longest atomic instruction that ends there is right: shorter ones that end there lack its prefixes.
    let instruction = (SHORTEST..=code.len()).rev().find_map(|length| ending(code, length, next))?;
    address_of(&instruction, register)
}

/// The address of an instruction's operand in memory. `None`: it has none, the operand is relative to the stack pointer or
/// has a segment prefix, or a register is not known.
pub(super) fn address_of(instruction: &Instruction, register: impl Fn(u8) -> Option<u64>) -> Option<u64> {
    let base = instruction.memory_base();
    if matches!(base, Register::RSP | Register::ESP) || instruction.segment_prefix() != Register::None {
        return None;
    }
    let memory = (0..instruction.op_count()).find(|at| instruction.op_kind(*at) == OpKind::Memory)?;
    let value = |register_of: Register, _: usize, _: usize| match register_of {
        // Segments other than FS and GS begin at 0.
        Register::CS | Register::DS | Register::ES | Register::SS => Some(0),
        other => register(dwarf(other.full_register())?),
    };
    instruction.virtual_address(memory, 0, value).filter(|address| *address != 0)
}

/// The atomic instruction of `length` bytes that ends the code, if there is one.
fn ending(code: &[u8], length: usize, next: u64) -> Option<Instruction> {
    let bytes = code.get(code.len().checked_sub(length)?..)?;
    let mut decoder = Decoder::with_ip(64, bytes, next.wrapping_sub(length as u64), DecoderOptions::NONE);
    let instruction = decoder.decode();
    let is_atomic = instruction.has_lock_prefix() || instruction.mnemonic() == Mnemonic::Xchg;
    (instruction.len() == length && !instruction.is_invalid() && is_atomic).then_some(instruction)
}

/// A general register's number in DWARF (System V ABI for AMD64, figure 3.36).
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

    /// Each register contains 0x1000 times its number, so an address computed from a wrong register differs.
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
