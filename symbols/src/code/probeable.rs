//! Decides which instructions the kernel lets a probe replace. If the kernel refuses one address, it refuses the whole
//! group of probes, so refused addresses are removed before attaching.

use iced_x86::{Code, Decoder, DecoderOptions, EncodingKind, FlowControl, Instruction, Mnemonic, Register};

/// Whether the kernel accepts a uprobe on this instruction on x86-64. `instruction` is the decoded form of `bytes`.
///
/// The rules follow `validate_insn_64bits` and its tables in the kernel's arch/x86/kernel/uprobes.c. Where kernel
/// versions differ, the strictest one decides. The kernel refuses `lock`, and segment prefixes except fs and gs. Older
/// kernels also refuse instructions with three opcode bytes, or with a VEX or EVEX prefix. Other refused instructions
/// are privileged ones, traps, system calls and [`is_rewritten`] ones.
pub fn can_hold_probe(instruction: &Instruction, bytes: &[u8]) -> bool {
    if instruction.is_invalid() || instruction.is_privileged() {
        return false;
    }
    if instruction.code().encoding() != EncodingKind::Legacy || is_rewritten(instruction, bytes) {
        return false;
    }
    let prefix = |byte: &u8| matches!(byte, 0x26 | 0x2e | 0x36 | 0x3e | 0x64..=0x67 | 0xf0 | 0xf2 | 0xf3);
    let prefixes = bytes.iter().take_while(|byte| prefix(byte)).count();
    if bytes[..prefixes].iter().any(|byte| matches!(byte, 0x26 | 0x2e | 0x36 | 0x3e | 0xf0)) {
        return false;
    }
    let rest = &bytes[prefixes..];
    let rex = rest.first().copied().filter(|byte| byte & 0xf0 == 0x40);
    let rest = if rex.is_some() { &rest[1..] } else { rest };
    // Go's write barriers begin with `xchg %rax, %r8` (49 90). The kernel examines only the last byte, mistakes the
    // instruction for `nop` and does not execute the exchange (`branch_setup_xol_ops`).
    if rex.is_some_and(|rex| rex & 1 != 0) && rest.first() == Some(&0x90) {
        return false;
    }
    let opcode_refused = matches!(
        rest,
        [0x0f, 0x38 | 0x3a, ..]
            | [0x0f, 0x00..=0x0d | 0x18 | 0x24..=0x27 | 0x30 | 0x34..=0x3f | 0x78..=0x7d, ..]
            | [0x0f, 0xa6 | 0xa7 | 0xae | 0xb8 | 0xd0 | 0xf0 | 0xff, ..]
            | [0x6c..=0x6f | 0xcc..=0xcf | 0xd6 | 0xe4..=0xe7 | 0xec..=0xef | 0xf1 | 0xf4 | 0xfa | 0xfb, ..]
    );
    // `mov ss` and `pop ss` delay the trap by which the kernel stops after the instruction.
    !opcode_refused
        && instruction.mnemonic() != Mnemonic::Syscall
        && instruction.code() != Code::Mov_Sreg_rm16
        && instruction.code() != Code::Mov_Sreg_r32m16
        && instruction.code() != Code::Mov_Sreg_r64m16
}

/// Whether a kernel replaces this instruction by a call after the first hit of its probe. Since Linux 6.18, kernels
/// replace a `nop` of five bytes (`can_optimize` in the same file). The call leads to a page that forked children do
/// not inherit, so these children end by SIGSEGV. True for every `nop` of five bytes, and for a five-byte `lea` that
/// copies a register into itself.
pub fn is_rewritten(instruction: &Instruction, bytes: &[u8]) -> bool {
    let lea_nothing = instruction.mnemonic() == Mnemonic::Lea
        && instruction.memory_displacement64() == 0
        && instruction.memory_index() == Register::None
        && instruction.memory_base().full_register() == instruction.op0_register().full_register();
    let nop = matches!(instruction.mnemonic(), Mnemonic::Nop | Mnemonic::Reservednop | Mnemonic::Pause);
    bytes.len() == 5 && (nop || lea_nothing)
}

/// Whether a hit makes the kernel execute the probed instruction elsewhere, with a second trap after it. The kernel
/// emulates other instructions without a second trap: `push` of a register, a one-byte `nop`, direct jumps and calls
/// (`branch_setup_xol_ops` and `push_setup_xol_ops` in arch/x86/kernel/uprobes.c). The result only affects the cost of
/// a hit.
pub fn is_stepped(instruction: &Instruction, bytes: &[u8]) -> bool {
    let push = matches!(bytes, [0x50..=0x57] | [0x40..=0x4f, 0x50..=0x57]);
    let direct = matches!(
        instruction.flow_control(),
        FlowControl::UnconditionalBranch | FlowControl::ConditionalBranch | FlowControl::Call
    );
    !push && !direct && !matches!(bytes, [0x90])
}

/// Whether these bytes begin with a `nop` on which the kernel accepts a uprobe.
pub fn probeable_nop(bytes: &[u8]) -> bool {
    let (instruction, own) = first_of(bytes);
    instruction.mnemonic() == Mnemonic::Nop && can_hold_probe(&instruction, own)
}

/// [`is_stepped`] for the first instruction of these bytes.
pub fn is_stepped_nop(bytes: &[u8]) -> bool {
    let (instruction, own) = first_of(bytes);
    is_stepped(&instruction, own)
}

fn first_of(bytes: &[u8]) -> (Instruction, &[u8]) {
    let instruction = Decoder::new(64, bytes, DecoderOptions::NONE).decode();
    (instruction, bytes.get(..instruction.len()).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn probes_of_usdt_are_nops_that_the_kernel_does_not_rewrite() {
        assert!(probeable_nop(&[0x90, 0xc3]) && probeable_nop(&[0x0f, 0x1f, 0x00]));
        for bytes in [&[][..], &[0xc3], &[0xcc, 0x90], &[0x0f, 0x1f, 0x44, 0x00, 0x00], &[0x0f]] {
            assert!(!probeable_nop(bytes), "{bytes:x?}");
        }
        assert!(!is_stepped_nop(&[0x90, 0xc3]));
    }

    fn check(bytes: &[u8]) -> bool {
        let instruction = Decoder::new(64, bytes, DecoderOptions::NONE).decode();
        assert_eq!(instruction.len(), bytes.len());
        can_hold_probe(&instruction, bytes)
    }

    #[test]
    fn usual_first_and_last_instructions_may_have_probes() {
        for bytes in [
            &[0x55][..],                                    // push rbp
            &[0xf3, 0x0f, 0x1e, 0xfa],                      // endbr64
            &[0x41, 0x57],                                  // push r15
            &[0x48, 0x83, 0xec, 0x18],                      // sub rsp, 24
            &[0xc3],                                        // ret
            &[0xf3, 0xc3],                                  // rep ret
            &[0xe9, 0, 0, 0, 0],                            // jmp
            &[0xff, 0x25, 0, 0, 0, 0],                      // jmp [rip]
            &[0x64, 0x48, 0x8b, 0x04, 0x25, 0x28, 0, 0, 0], // mov rax, fs:0x28
            &[0xf2, 0x0f, 0x58, 0xc1],                      // addsd
            &[0x90],                                        // nop
            &[0x49, 0x92],                                  // xchg rax, r10
        ] {
            assert!(check(bytes), "{bytes:x?}");
        }
    }

    #[test]
    fn common_first_instructions_are_emulated_by_the_kernel() {
        let stepped =
            |bytes: &[u8]| is_stepped(&Decoder::new(64, bytes, DecoderOptions::NONE).decode(), bytes);
        assert!(!stepped(&[0x55]) && !stepped(&[0x41, 0x57]) && !stepped(&[0x90]));
        assert!(!stepped(&[0xe9, 0, 0, 0, 0]) && !stepped(&[0xe8, 0, 0, 0, 0]) && !stepped(&[0x74, 2]));
        assert!(stepped(&[0xf3, 0x0f, 0x1e, 0xfa]) && stepped(&[0xc3]) && stepped(&[0x48, 0x83, 0xec, 8]));
    }

    /// A probe on such a `nop` would end forked children by SIGSEGV at their first call.
    #[test]
    fn nops_that_the_kernel_turns_into_calls_get_no_probes() {
        for bytes in [
            &[0x0f, 0x1f, 0x44, 0x00, 0x00][..],
            &[0x66, 0x0f, 0x1f, 0x40, 0x00],
            &[0x66, 0x66, 0x66, 0x66, 0x90],
            &[0x48, 0x8d, 0x74, 0x26, 0x00], // lea rsi, [rsi]
        ] {
            assert!(!check(bytes), "{bytes:x?}");
        }
        for bytes in [
            &[0x0f, 0x1f, 0x40, 0x00][..],
            &[0x66, 0x0f, 0x1f, 0x44, 0x00, 0x00],
            &[0x48, 0x8d, 0x7c, 0x24, 0x00], // lea rdi, [rsp]
            &[0x48, 0x8d, 0x74, 0x26, 0x08], // lea rsi, [rsi + 8]
            &[0xb8, 0, 0, 0, 0],
        ] {
            assert!(check(bytes), "{bytes:x?}");
        }
    }

    #[test]
    fn instructions_that_the_kernel_refuses_get_no_probes() {
        for bytes in [
            &[0xf4][..],                     // hlt
            &[0xcc],                         // int3
            &[0x0f, 0x05],                   // syscall
            &[0x0f, 0x0b],                   // ud2
            &[0xf0, 0x48, 0x0f, 0xc1, 0x07], // lock xadd
            &[0x3e, 0xff, 0xe0],             // notrack jmp rax
            &[0xc5, 0xf8, 0x77],             // vzeroupper
            &[0x66, 0x0f, 0x38, 0x00, 0xc1], // pshufb
            &[0x49, 0x90],                   // xchg rax, r8: the kernel takes it for nop
            &[0x41, 0x90],                   // xchg eax, r8d
            &[0x66, 0x41, 0x90],             // xchg ax, r8w
        ] {
            assert!(!check(bytes), "{bytes:x?}");
        }
    }
}
