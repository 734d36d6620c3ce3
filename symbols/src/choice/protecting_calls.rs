//! Finds calls that make memory executable, in machine code, by their targets and by the constants loaded before them.

use crate::elf::{ElfFile, Import};
use iced_x86::{Decoder, DecoderOptions, FlowControl, InstructionInfoFactory, OpAccess, Register};
use rustc_hash::FxHashMap;

/// Number of bytes of a section that are read at once, up to a limit for each file.
const PIECE: u64 = 1 << 20;
pub(super) const MOST_BYTES: u64 = 256 << 20;
/// Number of bytes before a call in which its arguments are searched. Pieces of a section overlap by this number.
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

/// Which argument of a function decides whether it makes memory executable.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Asked {
    /// Makes memory with a protection, the third argument.
    Protection,
    /// Attaches shared memory; the third argument has flags.
    Shared,
    /// Does any system call; the first argument is its number.
    AnyCall,
    /// Takes a path and opens nothing.
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

    /// `Path` for functions that return facts about a path, or execute the file there.
    pub(super) fn about_paths(name: &[u8]) -> Option<Asked> {
        let plain = name.strip_prefix(b"__").and_then(|name| name.strip_suffix(b"_chk")).unwrap_or(name);
        let is_such = plain.starts_with(b"exec")
            || plain.starts_with(b"posix_spawn")
            || [&b"readlink"[..], b"readlinkat", b"realpath", b"stat", b"lstat", b"access"].contains(&plain);
        is_such.then_some(Asked::Path)
    }

    /// Whether the call at this place of the code may make memory executable: its constants do not exclude it.
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

/// Where a file refers to imported functions: slots that contain their addresses, and the linker's stubs. All addresses
/// are as linked.
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

    /// Whether a stub or slot of one of the functions is at this address.
    pub(super) fn has(&self, at: u64) -> bool {
        self.stubs.contains_key(&at) || self.slots.contains_key(&at)
    }

    /// Whether code at this address may make memory executable: by a call without a harmless constant, or by loading a pointer.
    pub(super) fn may_execute(&self, code: &[u8], at: u64) -> bool {
        self.any(code, at, true, Asked::may_execute)
    }

    /// Whether code at this address calls one of the functions with a constant that asks for execution.
    pub(super) fn execute(&self, code: &[u8], at: u64) -> bool {
        self.any(code, at, false, Asked::executes)
    }

    /// Whether `is_so` holds for a call; or, with `pointers`, whether a pointer to one of the functions is loaded.
    fn any(&self, code: &[u8], at: u64, pointers: bool, is_so: fn(Asked, &[u8], usize) -> bool) -> bool {
        if self.slots.is_empty() {
            return false;
        }
        (0..code.len()).any(|place| match code[place..] {
            // The instruction calls a stub, or jumps to it.
            [0xe8 | 0xe9, ..] => {
                let asked = relative(code, place + 1, at).and_then(|to| self.stubs.get(&to));
                asked.is_some_and(|asked| is_so(*asked, code, place))
            }
            // A call or jump through a slot.
            [0xff, 0x15 | 0x25, ..] => {
                let asked = relative(code, place + 2, at).and_then(|to| self.slots.get(&to));
                asked.is_some_and(|asked| is_so(*asked, code, place))
            }
            // The slot's content is loaded: a pointer to the function.
            [0x48 | 0x4c, 0x8b, mode, ..] if pointers && mode & 0xc7 == 0x05 => {
                relative(code, place + 3, at).is_some_and(|to| self.slots.contains_key(&to))
            }
            _ => false,
        })
    }
}

/// The target of a relative reference: four bytes at `place` are its distance from the byte after them.
pub(super) fn relative(code: &[u8], place: usize, at: u64) -> Option<u64> {
    let distance = i32::from_le_bytes(code.get(place..place + 4)?.try_into().ok()?);
    Some(at.wrapping_add(place as u64 + 4).wrapping_add_signed(i64::from(distance)))
}

/// The constant that a register contains at a place, if an instruction shortly before loads it and no instruction in
/// between changes it.
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
    // If there are several loads, the last one counts from which instructions lead exactly to the call.
    (at.saturating_sub(BEFORE)..at).rev().find_map(|from| {
        let (value, length) = value(from)?;
        is_kept(code.get(from + length..at)?, register).map(|kept| kept.then_some(value))
    })?
}

/// Whether these instructions do not change the register and run in sequence; `None`: they do not end at the last byte.
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

/// Whether `found` is true for a piece of the wanted sections; it gets the piece and its linked address.
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
            // Pieces overlap, since a call or a name may lie across a border.
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
        // or $4, %edx; cmovge %r13d, %edx; a call that may change it; a jump away; no constant at all.
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
