//! Whether a program may copy, move or patch its own instructions: a copy of a function with a probe contains
//! a breakpoint that the kernel does not know, which ends the program by SIGTRAP. A patch over a probe is
//! lost when the probe is removed.
//!
//! To run a copy a program has to make memory executable: by `mmap`, `mprotect`, `pkey_mprotect` (the third argument says
//! it) or `mremap`, or by the same calls through libc's `syscall` or instructions of its own. So each place that refers
//! to one of them must show a constant protection without execution, else the program counts as one that may. To patch
//! itself without them it opens `/proc/self/mem`: that name counts. Rust's standard library calls `mprotect`, `mmap` and
//! `syscall` for stacks, debug information and locks: of Rust programs only the rest counts.
//!
//! Static programs name nothing, and what a library does is not visible; nor is a system call whose number is
//! computed.

use super::elf_file::ElfFile;
use super::imports::{Import, imports};
use iced_x86::{Decoder, DecoderOptions, FlowControl, InstructionInfoFactory, OpAccess, Register};
use rustc_hash::FxHashMap;

/// Instructions and constants are read in pieces of this many bytes, up to a limit for each file.
const PIECE: u64 = 1 << 20;
const MOST_BYTES: u64 = 256 << 20;
/// How far before a call its arguments are looked for, bytes. Pieces overlap by as much.
const BEFORE: usize = 96;
/// `PROT_EXEC`.
const EXECUTE: u32 = 4;
/// `mmap`, `mprotect` and `pkey_mprotect`, whose third argument is a protection; `mremap` (asm/unistd_64.h).
const PROTECTING: [u32; 3] = [9, 10, 329];
const MREMAP: u32 = 25;

/// See the module.
pub fn moves_code(elf: &ElfFile, is_rust: bool) -> bool {
    let imports = imports(elf);
    let named = |name: &str| imports.iter().any(|import| import.name == name.as_bytes());
    if named("mremap") || named("pkey_mprotect") || opens_own_memory(elf, !is_rust && named("dlsym")) {
        return true;
    }
    if !elf.is_x86_64 {
        return named("mprotect") && !is_rust;
    }
    let watched: Vec<(&Import, Asked)> = imports
        .iter()
        .filter_map(|import| Some((import, Asked::by(&import.name)?)))
        .filter(|_| !is_rust)
        .collect();
    if watched.iter().any(|(import, _)| import.taken) {
        return true;
    }
    let maps = named("mmap") || named("mmap64");
    let references = References::of(elf, &watched);
    any_piece(
        elf,
        |name| !name.starts_with(b".plt"),
        true,
        |code, at| {
            maps && !is_rust && has_arguments(code) || references.may_execute(code, at) || calls_itself(code)
        },
    )
}

/// What a function is asked for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Asked {
    /// Memory of a protection: its third argument.
    Protection,
    /// Any system call: its first argument is the number.
    AnyCall,
}

impl Asked {
    fn by(name: &[u8]) -> Option<Asked> {
        match name {
            b"mmap" | b"mmap64" | b"mprotect" => Some(Asked::Protection),
            b"syscall" => Some(Asked::AnyCall),
            _ => None,
        }
    }

    /// Whether the call at this place of the code may make memory executable.
    fn may_execute(self, code: &[u8], at: usize) -> bool {
        let harmless = |prot: Option<u32>| prot.is_some_and(|prot| prot & EXECUTE == 0);
        match self {
            Asked::Protection => !harmless(constant(code, at, Register::EDX)),
            Asked::AnyCall => match constant(code, at, Register::EDI) {
                Some(number) if PROTECTING.contains(&number) => !harmless(constant(code, at, Register::ECX)),
                number => number.is_none_or(|number| number == MREMAP),
            },
        }
    }
}

/// Where instructions refer to functions of others: by the slots that hold their addresses, and by the linker's stubs.
struct References {
    slots: FxHashMap<u64, Asked>,
    stubs: FxHashMap<u64, Asked>,
}

impl References {
    fn of(elf: &ElfFile, watched: &[(&Import, Asked)]) -> References {
        let slots =
            watched.iter().flat_map(|(import, asked)| import.slots.iter().map(|&slot| (slot, *asked)));
        let mut references = References { slots: slots.collect(), stubs: FxHashMap::default() };
        if references.slots.is_empty() {
            return references;
        }
        let mut stubs = FxHashMap::default();
        any_piece(
            elf,
            |name| name.starts_with(b".plt"),
            true,
            |code, at| {
                for place in 0..code.len() {
                    let asked = (code.get(place..place + 2) == Some(&[0xff, 0x25]))
                        .then(|| references.slots.get(&relative(code, place + 2, at)?).copied())
                        .flatten();
                    let Some(asked) = asked else { continue };
                    // The jump may come after `endbr64` and `bnd`.
                    for before in [0, 1, 4, 5] {
                        stubs.insert(at.wrapping_add(place as u64).wrapping_sub(before), asked);
                    }
                }
                false
            },
        );
        references.stubs = stubs;
        references
    }

    /// Whether code that lies at this address uses one of them in another way than with a harmless constant.
    fn may_execute(&self, code: &[u8], at: u64) -> bool {
        if self.slots.is_empty() {
            return false;
        }
        (0..code.len()).any(|place| match code[place..] {
            // A call of a stub, or a jump to it.
            [0xe8 | 0xe9, ..] => {
                let asked = relative(code, place + 1, at).and_then(|to| self.stubs.get(&to));
                asked.is_some_and(|asked| asked.may_execute(code, place))
            }
            // A call through the slot, or a jump.
            [0xff, 0x15 | 0x25, ..] => {
                let asked = relative(code, place + 2, at).and_then(|to| self.slots.get(&to));
                asked.is_some_and(|asked| asked.may_execute(code, place))
            }
            // The slot's content is loaded: a pointer to the function.
            [0x48 | 0x4c, 0x8b, mode, ..] if mode & 0xc7 == 0x05 => {
                relative(code, place + 3, at).is_some_and(|to| self.slots.contains_key(&to))
            }
            _ => false,
        })
    }
}

/// The address that four bytes at a place are the distance to, from after them.
fn relative(code: &[u8], place: usize, at: u64) -> Option<u64> {
    let distance = i32::from_le_bytes(code.get(place..place + 4)?.try_into().ok()?);
    Some(at.wrapping_add(place as u64 + 4).wrapping_add_signed(i64::from(distance)))
}

/// Whether a system call instruction may make memory executable: after the number of such a call, or after an
/// unknown number if the third argument is such a protection. Bytes that only look like the instruction have
/// neither before them.
fn calls_itself(code: &[u8]) -> bool {
    let mut syscalls = (0..code.len().saturating_sub(1)).filter(|&at| code[at..at + 2] == [0x0f, 0x05]);
    syscalls.any(|at| {
        let prot = constant(code, at, Register::EDX);
        match constant(code, at, Register::EAX) {
            Some(number) if PROTECTING.contains(&number) => prot.is_none_or(|prot| prot & EXECUTE != 0),
            Some(number) => number == MREMAP,
            None => prot.is_some_and(|prot| (EXECUTE..2 * EXECUTE).contains(&prot)),
        }
    })
}

/// The constant that a register holds at a place, where it is put there shortly before and left alone in between.
fn constant(code: &[u8], at: usize, register: Register) -> Option<u32> {
    let (put, cleared) = match register {
        Register::EAX => (0xb8, 0xc0),
        Register::ECX => (0xb9, 0xc9),
        Register::EDX => (0xba, 0xd2),
        _ => (0xbf, 0xff),
    };
    let value = |from: usize| match code.get(from..at)? {
        [first, a, b, c, d, ..] if *first == put => Some((u32::from_le_bytes([*a, *b, *c, *d]), 5)),
        [0x31 | 0x33, operands, ..] if *operands == cleared => Some((0, 2)),
        _ => None,
    };
    // The last place from which instructions lead right to the call is the one that counts.
    (at.saturating_sub(BEFORE)..at).rev().find_map(|from| {
        let (value, length) = value(from)?;
        is_kept(code.get(from + length..at)?, register).map(|kept| kept.then_some(value))
    })?
}

/// Whether these instructions leave a register alone and follow each other; `None`: they end beyond the last byte.
fn is_kept(code: &[u8], register: Register) -> Option<bool> {
    let mut decoder = Decoder::new(64, code, DecoderOptions::NONE);
    let mut factory = InstructionInfoFactory::new();
    let mut kept = true;
    while decoder.can_decode() {
        let instruction = decoder.decode();
        if instruction.is_invalid() {
            return None;
        }
        let writes = |access| !matches!(access, OpAccess::Read | OpAccess::CondRead | OpAccess::None);
        let written =
            factory.info(&instruction).used_registers().iter().any(|used| {
                used.register().full_register() == register.full_register() && writes(used.access())
            });
        let leads_on =
            matches!(instruction.flow_control(), FlowControl::Next | FlowControl::ConditionalBranch);
        kept &= leads_on && !written;
    }
    Some(kept)
}

/// Whether a string names the file of the program's own memory, or a function that only a lookup by name would reach.
fn opens_own_memory(elf: &ElfFile, looks_up: bool) -> bool {
    const FILE: &[u8] = b"/mem";
    let folders: [&[u8]; 6] =
        [b"/proc/self", b"/proc/thread-self", b"/proc/%d", b"/proc/%i", b"/proc/%u", b"/proc/%ld"];
    let functions: [&[u8]; 4] = [b"mmap", b"mprotect", b"pkey_mprotect", b"mremap"];
    let is_whole = |rest: &[u8], name: &[u8]| rest.starts_with(name) && rest.get(name.len()) == Some(&0);
    any_piece(
        elf,
        |name| name == b".rodata",
        false,
        |bytes, _| {
            (0..bytes.len()).any(|at| match bytes[at] {
                b'/' => {
                    bytes[at..].starts_with(FILE)
                        && folders.iter().any(|folder| bytes[..at].ends_with(folder))
                }
                0 => looks_up && functions.iter().any(|&name| is_whole(&bytes[at + 1..], name)),
                _ => false,
            })
        },
    )
}

/// Whether `found` is true of a piece of the sections with such names, with the address of the piece.
fn any_piece(
    elf: &ElfFile,
    wanted: impl Fn(&[u8]) -> bool,
    executable: bool,
    mut found: impl FnMut(&[u8], u64) -> bool,
) -> bool {
    let mut left = MOST_BYTES;
    let sections = elf.sections.iter().filter(|section| {
        section.address != 0 && section.is_executable() == executable && wanted(&section.name)
    });
    for section in sections.take(1024) {
        let size = section.size.min(left);
        left -= size;
        for from in (0..size).step_by(PIECE as usize) {
            // Overlapping, since a call or a name may lie across the border.
            let length = (size - from).min(PIECE + BEFORE as u64);
            let bytes = section.offset.checked_add(from).map(|at| elf.read(at, length, "code", length));
            if let Some(Ok(bytes)) = bytes
                && found(&bytes, section.address.wrapping_add(from))
            {
                return true;
            }
        }
    }
    false
}

/// Whether `mov $PROT, %edx` and `mov $FLAGS, %ecx`, the third and fourth arguments of a call, are near each
/// other, with execution in the one and anonymous memory in the other. The same call may be reached with
/// other constants, too.
fn has_arguments(code: &[u8]) -> bool {
    const NEAR: usize = 32;
    const ANONYMOUS: u32 = 0x20;
    /// Flags that there are (asm-generic/mman.h), without types that no memory has.
    const FLAGS: u32 = 0x001f_f973;
    let value = |at: usize, opcode: u8| {
        let bytes = code.get(at..at.checked_add(5)?)?;
        (bytes[0] == opcode).then(|| u32::from_le_bytes([bytes[1], bytes[2], bytes[3], bytes[4]]))
    };
    let prot = |at: usize| value(at, 0xba).is_some_and(|prot| prot <= 7 && prot & EXECUTE != 0);
    let flags = |at: usize| {
        value(at, 0xb9).is_some_and(|flags| flags & ANONYMOUS != 0 && flags & 3 != 0 && flags & !FLAGS == 0)
    };
    (0..code.len()).filter(|&at| prot(at)).any(|at| (at.saturating_sub(NEAR)..at + NEAR).any(flags))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_to_execute_is_known_by_its_arguments() {
        let call = |prot: u8, flags: u8, between: usize| {
            let mut code = vec![0xb9, flags, 0, 0, 0];
            code.extend(std::iter::repeat_n(0x90, between));
            code.extend([0xba, prot, 0, 0, 0, 0xe8, 0, 0, 0, 0]);
            code
        };
        assert!(has_arguments(&call(7, 0x22, 0)) && has_arguments(&call(5, 0x21, 20)));
        // The last one is a number of a line.
        let line = vec![0xb9, 0xba, 0x06, 0, 0, 0xba, 7, 0, 0, 0, 0xe8, 0, 0, 0, 0];
        for no in [call(3, 0x22, 0), call(7, 0x02, 0), call(7, 0x22, 60), call(9, 0x22, 0), Vec::new(), line]
        {
            assert!(!has_arguments(&no), "{no:x?}");
        }
        for cut in 0..10 {
            assert!(!has_arguments(&call(7, 0x22, 0)[..cut]), "{cut}");
        }
    }

    #[test]
    fn only_a_constant_that_stays_is_believed() {
        let prot = |code: &[u8]| constant(code, code.len(), Register::EDX);
        assert_eq!(prot(&[0xba, 3, 0, 0, 0, 0x31, 0xff]), Some(3));
        assert_eq!(prot(&[0x31, 0xd2, 0x90]), Some(0));
        // or $4, %edx; cmovge %r13d, %edx; a call that may change it; a jump away; nothing at all.
        for code in [
            &[0xba, 3, 0, 0, 0, 0x83, 0xca, 4][..],
            &[0xba, 3, 0, 0, 0, 0x41, 0x0f, 0x4d, 0xd5],
            &[0xba, 3, 0, 0, 0, 0xe8, 0, 0, 0, 0],
            &[0xba, 3, 0, 0, 0, 0xeb, 0],
            &[0x89, 0xf2],
            &[],
        ] {
            assert_eq!(prot(code), None, "{code:x?}");
        }
    }

    #[test]
    fn system_calls_of_its_own_are_known_by_their_numbers() {
        let raw =
            |number: u8, prot: u8| calls_itself(&[0xb8, number, 0, 0, 0, 0xba, prot, 0, 0, 0, 0x0f, 0x05]);
        assert!(raw(9, 7) && raw(10, 5) && raw(25, 0));
        assert!(!raw(9, 3) && !raw(202, 7));
        // mov %r12, %rax
        let hidden = |prot: u8| calls_itself(&[0xba, prot, 0, 0, 0, 0x4c, 0x89, 0xe0, 0x0f, 0x05]);
        assert!(hidden(7) && !hidden(3) && !hidden(64));
        let by_libc = |number: u8, prot: u8| {
            let code = [0xb9, prot, 0, 0, 0, 0xbf, number, 0, 0, 0];
            Asked::AnyCall.may_execute(&code, code.len())
        };
        assert!(by_libc(9, 7) && by_libc(10, 5) && by_libc(25, 0));
        assert!(!by_libc(9, 3) && !by_libc(202, 7));
        assert!(Asked::AnyCall.may_execute(&[0x89, 0xf7], 2));
    }

    #[test]
    fn this_program_of_rust_does_not_move_its_code() {
        let elf = ElfFile::open(std::path::Path::new("/proc/self/exe")).expect("an ELF file");
        assert!(imports(&elf).iter().any(|import| import.name == b"mprotect"));
        assert!(!moves_code(&elf, true));
    }
}
