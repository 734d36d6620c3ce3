//! Examines the file of a program that is about to start: whether the loader can load this library into the program.
//!
//! The code uses few system calls and allocates no memory, because it may run in a child of `vfork`. The code does not
//! trust numbers in the file.

use crate::system::Open;
use core::ffi::c_char;

const ELF: &[u8] = b"\x7fELF";
const CLASS_64: u8 = 2;
#[cfg(target_arch = "x86_64")]
const MACHINE: u64 = 62;
#[cfg(target_arch = "aarch64")]
const MACHINE: u64 = 183;

/// Names of the runtimes of sanitizers. A sanitizer ends the program if its runtime is not the first library.
const INSIST: [&[u8]; 5] = [b"libasan.so", b"libtsan.so", b"liblsan.so", b"libhwasan.so", b"libclang_rt."];

/// Largest number of segments that are examined, and of entries of the dynamic section.
const MOST_SEGMENTS: u64 = 64;
const MOST_ENTRIES: u64 = 256;

const LOAD: u64 = 1;
const DYNAMIC: u64 = 2;
const NEEDED: u64 = 1;
const STRINGS: u64 = 5;

/// Whether this library must not be loaded before the libraries of the program in this file. True if the program is for
/// another kind of machine, or if one of its libraries must be the first. False for a file that is no program.
pub fn refuses_library(path: *const c_char) -> bool {
    let Some(file) = Open::file(path) else { return false };
    let mut head = [0u8; 64];
    let length = file.read_at(0, &mut head);
    if length < 20 || !begins(&head, ELF) {
        return false;
    }
    if head[4] != CLASS_64 || number(&head, 18, 2) != MACHINE {
        return true;
    }
    length == head.len() && insists(&file, &head)
}

/// Whether the file names a library that must be the first.
fn insists(file: &Open, head: &[u8]) -> bool {
    let segments = Segments { file, at: number(head, 32, 8), count: number(head, 56, 2).min(MOST_SEGMENTS) };
    let Some(dynamic) = segments.find(|segment| segment.kind == DYNAMIC) else { return false };
    let entries = (dynamic.length / 16).min(MOST_ENTRIES);
    let entry = |index: u64| {
        let mut bytes = [0u8; 16];
        let at = dynamic.offset.wrapping_add(index.wrapping_mul(16));
        (file.read_at(at, &mut bytes) == bytes.len()).then(|| (number(&bytes, 0, 8), number(&bytes, 8, 8)))
    };
    let strings = (0..entries).find_map(|index| entry(index).filter(|(tag, _)| *tag == STRINGS));
    let Some((_, address)) = strings else { return false };
    let holds =
        |segment: &Segment| segment.kind == LOAD && address.wrapping_sub(segment.address) < segment.length;
    let Some(segment) = segments.find(holds) else { return false };
    let strings = address.wrapping_sub(segment.address).wrapping_add(segment.offset);
    (0..entries).filter_map(entry).filter(|(tag, _)| *tag == NEEDED).any(|(_, place)| {
        let mut name = [0u8; 16];
        file.read_at(strings.wrapping_add(place), &mut name);
        INSIST.iter().any(|known| begins(&name, known))
    })
}

/// The parts of a program header that are needed here.
struct Segment {
    kind: u64,
    offset: u64,
    address: u64,
    length: u64,
}

/// The program headers of a file.
struct Segments<'f> {
    file: &'f Open,
    at: u64,
    count: u64,
}

impl Segments<'_> {
    fn find(&self, is_it: impl Fn(&Segment) -> bool) -> Option<Segment> {
        (0..self.count).find_map(|index| {
            let mut bytes = [0u8; 56];
            let at = self.at.wrapping_add(index.wrapping_mul(56));
            if self.file.read_at(at, &mut bytes) != bytes.len() {
                return None;
            }
            let segment = Segment {
                kind: number(&bytes, 0, 4),
                offset: number(&bytes, 8, 8),
                address: number(&bytes, 16, 8),
                length: number(&bytes, 32, 8),
            };
            is_it(&segment).then_some(segment)
        })
    }
}

/// The little-endian number of `size` bytes at this position; 0 if the position is outside.
fn number(bytes: &[u8], at: usize, size: usize) -> u64 {
    let digits = bytes.iter().skip(at).take(size).rev();
    digits.fold(0, |number, byte| number << 8 | u64::from(*byte))
}

/// Compares byte by byte, because the compiler would otherwise call a function of libc.
fn begins(bytes: &[u8], with: &[u8]) -> bool {
    bytes.len() >= with.len() && bytes.iter().zip(with).all(|(a, b)| core::hint::black_box(a) == b)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::CString;
    use std::os::unix::ffi::OsStrExt;
    use std::process::Command;

    fn refuses(path: &std::path::Path) -> bool {
        let path = CString::new(path.as_os_str().as_bytes()).expect("a path");
        refuses_library(path.as_ptr())
    }

    /// A program with a sanitizer that a recorded command starts must not end at its start.
    #[test]
    fn a_program_with_an_address_sanitizer_refuses_the_library() {
        let folder = std::env::temp_dir().join(std::format!("longpole-executable-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        let source = folder.join("main.c");
        std::fs::write(&source, "int main(void) { return 0; }").expect("a file");
        for (flags, expected) in [(&[][..], false), (&["-fsanitize=address"], true), (&["-static"], false)] {
            let program = folder.join("program");
            let built = Command::new("cc").args(flags).arg(&source).arg("-o").arg(&program).status();
            if built.is_ok_and(|status| status.success()) {
                assert_eq!(refuses(&program), expected, "{flags:?}");
            }
        }
        assert!(!refuses(&source), "no program at all");
        assert!(!refuses(&folder));
        std::fs::remove_dir_all(folder).expect("removed");
    }

    /// Any numbers in the headers must give an answer without a panic.
    #[test]
    fn damaged_headers_of_an_executable_never_panic() {
        let path = std::env::temp_dir().join(std::format!("longpole-damaged-{}", std::process::id()));
        let whole = std::fs::read("/bin/sh").expect("a program");
        for at in (4..64).chain([64 + 8, 64 + 16, 64 + 32]) {
            let mut bytes = whole.clone();
            bytes[at] = 0xff;
            std::fs::write(&path, &bytes).expect("a file");
            refuses(&path);
        }
        std::fs::write(&path, &whole[..30]).expect("a file");
        refuses(&path);
        std::fs::remove_file(path).expect("removed");
    }
}
