//! Finds out whether a program may copy, move or patch its own instructions. A copy of a probed function contains a
//! breakpoint that the kernel does not know, and executing this breakpoint ends the program by SIGTRAP. If the program
//! patches an instruction that has a probe, the kernel overwrites the patch when the probe is removed.
//!
//! To run a copy, a program has to make memory executable: by `mmap`, `mprotect`, `pkey_mprotect` (third argument) or
//! `mremap`, called directly, through libc's `syscall` or by a system call instruction. A reference to one of these
//! functions is harmless only if its protection is a visible constant without execution. The same rule holds for the
//! flags of `shmat`. Any other reference makes the result [`MovesCode::Yes`]. So do `personality`, which can make all
//! memory executable, writable code and an executable stack. A program can also patch itself through the file
//! `/proc/self/mem`, so a string with that name has the same effect.
//!
//! A program that compares its code with its file would find the breakpoints. Such a program opens `/proc/self/exe`, or
//! reads in `/proc/self/maps` where its code is. If the program contains one of these names, the result is
//! [`MovesCode::Yes`], except where the name is only an argument of `readlink` or `exec`. Modules that verify a
//! checksum of their own code are recognised by the names of symbols around that code.
//!
//! Rust's standard library calls `mprotect`, `mmap` and `syscall` for stacks, debug information and locks, and contains
//! the names of the two files. So these calls and names are ignored in Rust programs. Libraries map and move data for
//! many reasons. So a library is refused only if it has such symbols, or if it clearly asks for executable memory, as
//! libraries do that hook functions.
//!
//! A static program imports nothing, and its C library makes such calls. There only functions of the C library may get
//! probes, and functions of the program do not. A system call whose number is computed at run time is not visible.

use super::own_files::OwnFiles;
use super::protecting_calls::{
    ALWAYS, Asked, EXECUTE, MOST_BYTES, PROTECTING, References, SHMAT, any_piece, constant, shares_code,
};
use crate::elf::{ElfFile, Import, imports};
use iced_x86::Register;
use serde::{Deserialize, Serialize};

/// Parts of the names of symbols around code with a checksum, in cryptographic modules: BoringSSL and OpenSSL.
const CHECKED: [&[u8]; 2] = [b"bcm_text_start", b"FIPS_text_start"];

/// What a program may do with its own instructions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum MovesCode {
    /// The program neither changes nor compares its instructions.
    No,
    /// The program contains its C library, and calls that may make memory executable. All of these calls may belong to
    /// the C library.
    WithItsLibc,
    /// The program may copy, move, patch or compare its instructions.
    Yes,
}

/// Finds out what a program may do with its own instructions; the module's documentation has the rules.
pub fn moves_code(elf: &ElfFile, is_rust: bool) -> MovesCode {
    let imports = imports(elf);
    if !may_move(elf, &imports, is_rust) {
        MovesCode::No
    } else if imports.is_empty() && !has_marks(elf) && !opens_own_memory(elf, false) {
        MovesCode::WithItsLibc
    } else {
        MovesCode::Yes
    }
}

fn may_move(elf: &ElfFile, imports: &[Import], is_rust: bool) -> bool {
    let named = |name: &str| imports.iter().any(|import| import.name == name.as_bytes());
    if ["mremap", "pkey_mprotect", "personality"].into_iter().any(named)
        || has_marks(elf)
        || opens_own_memory(elf, !is_rust && named("dlsym"))
    {
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
    let mut own = OwnFiles::of(elf, if is_rust { &[] } else { imports });
    let executes = any_piece(
        elf,
        |name| !name.starts_with(b".plt"),
        true,
        |code, at| {
            own.look(code, at);
            maps && !is_rust && has_arguments(code) || references.may_execute(code, at) || calls_itself(code)
        },
    );
    executes || own.are_read()
}

/// Whether a library makes memory executable. Libraries that hook functions do so: they run a copy of a function's
/// first instructions in that memory.
pub fn library_moves_code(elf: &ElfFile) -> bool {
    let imports = imports(elf);
    let named = |name: &str| imports.iter().any(|import| import.name == name.as_bytes());
    if ["pkey_mprotect", "personality"].into_iter().any(named) || has_marks(elf) {
        return true;
    }
    let watched: Vec<(&Import, Asked)> =
        imports.iter().filter_map(|import| Some((import, Asked::by(&import.name)?))).collect();
    if !elf.is_x86_64 || watched.is_empty() {
        return false;
    }
    let maps = named("mmap") || named("mmap64");
    let references = References::of(elf, &watched);
    let code = |name: &[u8]| !name.starts_with(b".plt");
    any_piece(elf, code, true, |code, at| maps && has_arguments(code) || references.execute(code, at))
}

/// Whether the file has writable code, an executable stack, or symbols around code with a checksum.
fn has_marks(elf: &ElfFile) -> bool {
    let names = [&b".strtab"[..], b".dynstr"].into_iter().filter_map(|name| elf.section(name));
    let mut names = names.filter_map(|section| elf.section_bytes(section, "names", MOST_BYTES).ok());
    elf.writes_code
        || names.any(|names| CHECKED.iter().any(|mark| memchr::memmem::find(&names, mark).is_some()))
}

/// Whether a system call instruction may make memory executable. The instruction may if the number of such a call is
/// loaded before it. An unknown number counts if the third argument is an executable protection. Data that only looks
/// like a system call instruction has neither constant before it.
fn calls_itself(code: &[u8]) -> bool {
    let mut syscalls = (0..code.len().saturating_sub(1)).filter(|&at| code[at..at + 2] == [0x0f, 0x05]);
    syscalls.any(|at| {
        let prot = constant(code, at, Register::EDX);
        match constant(code, at, Register::EAX) {
            Some(number) if PROTECTING.contains(&number) => prot.is_none_or(|prot| prot & EXECUTE != 0),
            Some(SHMAT) => shares_code(prot),
            Some(number) => ALWAYS.contains(&number),
            None => prot.is_some_and(|prot| (EXECUTE..2 * EXECUTE).contains(&prot)),
        }
    })
}

/// Whether a string in the file names the program's own memory file, or a function that the program can only reach by a
/// lookup by name.
fn opens_own_memory(elf: &ElfFile, looks_up: bool) -> bool {
    const FILE: &[u8] = b"/mem";
    let folders: [&[u8]; 6] =
        [b"/proc/self", b"/proc/thread-self", b"/proc/%d", b"/proc/%i", b"/proc/%u", b"/proc/%ld"];
    let functions: [&[u8]; 6] = [b"mmap", b"mprotect", b"pkey_mprotect", b"mremap", b"shmat", b"personality"];
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

/// Whether `mov $PROT, %edx` and `mov $FLAGS, %ecx`, which load the third and fourth argument of `mmap`, are near each
/// other and ask for executable anonymous memory. Further loads of other constants nearby do not matter, because other
/// paths may lead to the same call.
fn has_arguments(code: &[u8]) -> bool {
    const NEAR: usize = 32;
    const ANONYMOUS: u32 = 0x20;
    /// All existing flags (asm-generic/mman.h) except those for kinds of mappings that `mmap` does not make.
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
    fn a_call_that_maps_executable_memory_is_known_by_its_arguments() {
        let call = |prot: u8, flags: u8, between: usize| {
            let mut code = vec![0xb9, flags, 0, 0, 0];
            code.extend(std::iter::repeat_n(0x90, between));
            code.extend([0xba, prot, 0, 0, 0, 0xe8, 0, 0, 0, 0]);
            code
        };
        assert!(has_arguments(&call(7, 0x22, 0)) && has_arguments(&call(5, 0x21, 20)));
        // The bytes of the last call contain a line number.
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
    fn a_system_call_that_maps_executable_memory_is_known_by_its_number() {
        let raw =
            |number: u8, prot: u8| calls_itself(&[0xb8, number, 0, 0, 0, 0xba, prot, 0, 0, 0, 0x0f, 0x05]);
        assert!(raw(9, 7) && raw(10, 5) && raw(25, 0) && raw(135, 0));
        assert!(!raw(9, 3) && !raw(202, 7) && !raw(30, 0));
        let shared = |flags: u32| {
            let mut code = vec![0xba];
            code.extend(flags.to_le_bytes());
            let asked = Asked::Shared;
            (asked.may_execute(&code, code.len()), asked.executes(&code, code.len()))
        };
        assert_eq!(
            (shared(0o100_000), shared(0), shared(0o10_000)),
            ((true, true), (false, false), (false, false))
        );
        assert!(Asked::Shared.may_execute(&[0x89, 0xf2], 2) && !Asked::Shared.executes(&[0x89, 0xf2], 2));
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
    fn this_rust_program_does_not_move_its_code() {
        let elf = ElfFile::open(std::path::Path::new("/proc/self/exe")).expect("an ELF file");
        assert!(imports(&elf).iter().any(|import| import.name == b"mprotect"));
        assert_eq!(moves_code(&elf, true), MovesCode::No);
    }
}
