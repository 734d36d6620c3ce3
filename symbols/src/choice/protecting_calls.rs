//! Finds calls in machine code that make memory executable. The call's target and the constants loaded before it
//! decide.

use crate::elf::{ElfFile, Import};
use iced_x86::{Decoder, DecoderOptions, FlowControl, InstructionInfoFactory, OpAccess, Register};
use rustc_hash::FxHashMap;

/// Number of bytes of a section that are read at a time.
const PIECE: u64 = 1 << 20;
pub(super) const MOST_BYTES: u64 = 256 << 20;
/// Number of bytes before a call that are searched for its arguments. Pieces of a section overlap by this number.
const BEFORE: usize = 96;
/// The flag `PROT_EXEC` of `mmap` and `mprotect`.
pub(super) const EXECUTE: u32 = 4;
/// The flag `SHM_EXEC` of `shmat`.
const SHARED_EXECUTE: u32 = 0o100_000;
/// System call numbers (asm/unistd_64.h): `mmap`, `mprotect` and `pkey_mprotect`, whose third argument is a protection;
/// `shmat`; `mremap` and `personality`.
pub(super) const PROTECTING: [u32; 3] = [9, 10, 329];
pub(super) const SHMAT: u32 = 30;
pub(super) const ALWAYS: [u32; 2] = [25, 135];

/// Which argument of a function decides whether the call makes memory executable.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Asked {
    /// The function sets the protection of memory; the protection is the third argument.
    Protection,
    /// The function attaches shared memory; its flags are the third argument.
    Shared,
    /// The function makes any system call; the call's number is the first argument.
    AnyCall,
    /// The function takes a path and does not open the file.
    Path,
}

impl Asked {
    pub(super) fn by(name: &[u8]) -> Option<Asked> {
        match name {
            b"mmap" | b"mmap64" | b"mprotect" => Some(Asked::Protection),
            b"shmat" => Some(Asked::Shared),
            b"syscall" => Some(Asked::AnyCall),
            _ => None,
        }
    }

    /// Returns `Path` for functions that return facts about a path, or that execute the file.
    pub(super) fn about_paths(name: &[u8]) -> Option<Asked> {
        let plain = name.strip_prefix(b"__").and_then(|name| name.strip_suffix(b"_chk")).unwrap_or(name);
        let is_such = plain.starts_with(b"exec")
            || plain.starts_with(b"posix_spawn")
            || [&b"readlink"[..], b"readlinkat", b"realpath", b"stat", b"lstat", b"access"].contains(&plain);
        is_such.then_some(Asked::Path)
    }

    /// Whether the call at this place may make memory executable. True unless constants before the call exclude it.
    pub(super) fn may_execute(self, code: &[u8], at: usize) -> bool {
        let harmless = |prot: Option<u32>| prot.is_some_and(|prot| prot & EXECUTE == 0);
        match self {
            Asked::Protection => !harmless(constant(code, at, Register::EDX)),
            Asked::Shared => shares_code(constant(code, at, Register::EDX)),
            Asked::AnyCall => match constant(code, at, Register::EDI) {
                Some(number) if PROTECTING.contains(&number) => !harmless(constant(code, at, Register::ECX)),
                Some(SHMAT) => shares_code(constant(code, at, Register::ECX)),
                number => number.is_none_or(|number| ALWAYS.contains(&number)),
            },
            Asked::Path => false,
        }
    }

    /// Whether the constants of the call at this place ask for executable memory.
    pub(super) fn executes(self, code: &[u8], at: usize) -> bool {
        let has = |register, bit| constant(code, at, register).is_some_and(|value| value & bit != 0);
        match self {
            Asked::Protection => has(Register::EDX, EXECUTE),
            Asked::Shared => has(Register::EDX, SHARED_EXECUTE),
            Asked::AnyCall => {
                let number = constant(code, at, Register::EDI);
                number.is_some_and(|number| PROTECTING.contains(&number)) && has(Register::ECX, EXECUTE)
            }
            Asked::Path => false,
        }
    }
}

pub(super) fn shares_code(flags: Option<u32>) -> bool {
    flags.is_none_or(|flags| flags & SHARED_EXECUTE != 0)
}

/// The places in a file through which code refers to imported functions: slots that contain their addresses, and the
/// linker's stubs. All addresses are as linked.
#[derive(Default)]
pub(super) struct References {
    slots: FxHashMap<u64, Asked>,
    stubs: FxHashMap<u64, Asked>,
}

impl References {
    pub(super) fn of(elf: &ElfFile, watched: &[(&Import, Asked)]) -> References {
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
                    // In a stub, `endbr64` (4 bytes), `bnd` (1 byte) or both may come before the jump.
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

    /// Whether this is the address of a stub or slot of one of the functions.
    pub(super) fn has(&self, at: u64) -> bool {
        self.stubs.contains_key(&at) || self.slots.contains_key(&at)
    }

    /// Whether code at this address may make memory executable: by a call without a harmless constant, or by loading a
    /// pointer to one of the functions.
    pub(super) fn may_execute(&self, code: &[u8], at: u64) -> bool {
        self.any(code, at, true, Asked::may_execute)
    }

    /// Whether code at this address calls one of the functions with a constant that asks for execution.
    pub(super) fn execute(&self, code: &[u8], at: u64) -> bool {
        self.any(code, at, false, Asked::executes)
    }

    /// Whether `is_so` is true for a call in this code. With `pointers`, loading a pointer to one of the functions is
    /// enough.
    fn any(&self, code: &[u8], at: u64, pointers: bool, is_so: fn(Asked, &[u8], usize) -> bool) -> bool {
        if self.slots.is_empty() {
            return false;
        }
        (0..code.len()).any(|place| match code[place..] {
            // A call of a stub, or a jump to a stub.
            [0xe8 | 0xe9, ..] => {
                let asked = relative(code, place + 1, at).and_then(|to| self.stubs.get(&to));
                asked.is_some_and(|asked| is_so(*asked, code, place))
            }
            // A call or jump through a slot.
            [0xff, 0x15 | 0x25, ..] => {
                let asked = relative(code, place + 2, at).and_then(|to| self.slots.get(&to));
                asked.is_some_and(|asked| is_so(*asked, code, place))
            }
            // A load of a slot's content, which is a pointer to the function.
            [0x48 | 0x4c, 0x8b, mode, ..] if pointers && mode & 0xc7 == 0x05 => {
                relative(code, place + 3, at).is_some_and(|to| self.slots.contains_key(&to))
            }
            _ => false,
        })
    }
}

/// The target of a relative reference. The four bytes at `place` are the distance of the target from the byte after
/// them.
pub(super) fn relative(code: &[u8], place: usize, at: u64) -> Option<u64> {
    let distance = i32::from_le_bytes(code.get(place..place + 4)?.try_into().ok()?);
    Some(at.wrapping_add(place as u64 + 4).wrapping_add_signed(i64::from(distance)))
}

/// The constant in a register at a place. An instruction shortly before must load the constant, and no instruction in
/// between may change the register.
pub(super) fn constant(code: &[u8], at: usize, register: Register) -> Option<u32> {
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
    // x86 code can be decoded from a wrong byte. So a load counts only if decoding from it arrives exactly at the call;
    // of several such loads, the last one counts.
    (at.saturating_sub(BEFORE)..at).rev().find_map(|from| {
        let (value, length) = value(from)?;
        is_kept(code.get(from + length..at)?, register).map(|kept| kept.then_some(value))
    })?
}

/// Whether these instructions run one after the other and do not change the register. `None`: the last instruction does
/// not end at the last byte.
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

/// Whether `found` is true for any piece of the wanted sections. `found` gets each piece and its linked address.
pub(super) fn any_piece(
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
            // Pieces overlap, because a call or a name may cross the border of a piece.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_constant_that_reaches_the_call_is_its_argument() {
        let prot = |code: &[u8]| constant(code, code.len(), Register::EDX);
        assert_eq!(prot(&[0xba, 3, 0, 0, 0, 0x31, 0xff]), Some(3));
        assert_eq!(prot(&[0x31, 0xd2, 0x90]), Some(0));
        // `or $4, %edx`; `cmovge %r13d, %edx`; a call, which may change `%edx`; a jump away; no constant at all.
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
}
