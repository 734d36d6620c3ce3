//! Whether a program may copy or move its own instructions: a copy of a function with a probe has a breakpoint in it that
//! the kernel knows nothing of, and ends the program by SIGTRAP.
//!
//! Nothing proves it from outside, so a file counts as such a program by what it asks of libc. Of 639 programs of a
//! Debian, 2 name `mremap` (node and gold) and 7 `mprotect`; `mmap` is named by every tenth, so that it counts only if
//! some call of it asks for anonymous memory to execute. Rust's standard library names `mprotect` for its own stacks, and calls
//! `mmap` itself: of Rust only the first two names count.
//! Static programs name nothing, and what a library does is not seen.

use super::elf_file::{ElfFile, text_at};

/// Most bytes of symbols, and of their names, that are looked at.
const MOST_NAMES: u64 = 16 << 20;
/// Instructions are looked at in pieces of so many bytes, and so many of each file at most.
const PIECE: u64 = 1 << 20;
const MOST_CODE: u64 = 256 << 20;
const SYMBOL: usize = 24;

/// See the module.
pub fn moves_code(elf: &ElfFile, is_rust: bool) -> bool {
    let imports = imports(elf);
    let has = |name: &str| imports.iter().any(|import| import == name.as_bytes());
    let by_name = has("mremap") || has("pkey_mprotect") || has("mprotect") && !is_rust;
    by_name || elf.is_x86_64 && !is_rust && (has("mmap") || has("mmap64")) && asks_for_code(elf)
}

/// The functions and variables that it asks others for.
fn imports(elf: &ElfFile) -> Vec<Vec<u8>> {
    let bytes = |name: &[u8]| {
        let section = elf.section(name)?;
        elf.section_bytes(section, "the names it asks for", MOST_NAMES).ok()
    };
    let (Some(symbols), Some(names)) = (bytes(b".dynsym"), bytes(b".dynstr")) else { return Vec::new() };
    let undefined = symbols.as_chunks::<SYMBOL>().0.iter().filter(|symbol| symbol[6..8] == [0, 0]);
    let offset = |symbol: &[u8; SYMBOL]| u32::from_le_bytes([symbol[0], symbol[1], symbol[2], symbol[3]]);
    undefined.map(|symbol| text_at(&names, offset(symbol), 64).to_vec()).collect()
}

fn asks_for_code(elf: &ElfFile) -> bool {
    let mut left = MOST_CODE;
    elf.code_sections().iter().any(|section| {
        let size = section.size.min(left);
        left -= size;
        // Overlapping, since a call may lie across the border.
        (0..size).step_by(PIECE as usize).any(|from| {
            let length = (size - from).min(PIECE + 64);
            let bytes = section.offset.checked_add(from).map(|at| elf.read(at, length, "code", PIECE + 64));
            bytes.is_some_and(|bytes| bytes.is_ok_and(|bytes| has_arguments(&bytes)))
        })
    })
}

/// Whether `mov $PROT, %edx` and `mov $FLAGS, %ecx`, the third and fourth arguments of a call, stand near each other with
/// execution in the one and anonymous memory in the other.
fn has_arguments(code: &[u8]) -> bool {
    const NEAR: usize = 32;
    const EXECUTE: u32 = 4;
    const ANONYMOUS: u32 = 0x20;
    const FLAGS: u32 = 0x000f_ffff;
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
        for no in [call(3, 0x22, 0), call(7, 0x02, 0), call(7, 0x22, 60), call(9, 0x22, 0), Vec::new()] {
            assert!(!has_arguments(&no), "{no:x?}");
        }
        for cut in 0..10 {
            assert!(!has_arguments(&call(7, 0x22, 0)[..cut]), "{cut}");
        }
    }

    #[test]
    fn this_program_of_rust_does_not_move_its_code() {
        let elf = ElfFile::open(std::path::Path::new("/proc/self/exe")).expect("an ELF file");
        assert!(imports(&elf).iter().any(|name| name == b"mprotect"));
        assert!(!moves_code(&elf, true));
    }
}
