//! Compares the code that a process runs with the code in its files, because breakpoints change bytes of the code.

use std::fmt;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// A byte of code that has another value in a process than in the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangedByte {
    /// The file, as the process's mappings name it.
    pub file: String,
    /// The byte's offset in the file.
    pub offset: u64,
    /// The byte's address in the process.
    pub address: u64,
    /// The byte's value in the file.
    pub in_file: u8,
    /// The byte's value in the process.
    pub in_memory: u8,
}

impl fmt::Display for ChangedByte {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ChangedByte { file, offset, address, in_file, in_memory } = self;
        write!(f, "{file}+{offset:#x} at {address:#x}: {in_memory:02x} instead of {in_file:02x}")
    }
}

/// Compares every executable mapping of a file with that file. The result is empty if all bytes are the same. Mappings
/// without a file (`[vdso]`, `[uprobes]`, code made at run time) are skipped.
///
/// # Errors
/// There is no such process, or its memory may not be read.
pub fn changed_code(pid: u32) -> io::Result<Vec<ChangedByte>> {
    let memory = File::open(format!("/proc/{pid}/mem"))?;
    let mut changed = Vec::new();
    for line in std::fs::read_to_string(format!("/proc/{pid}/maps"))?.lines() {
        let Some(code) = Code::parse(line) else { continue };
        // `map_files` opens the file that is really mapped, even if it was replaced or deleted.
        let file = File::open(format!("/proc/{pid}/map_files/{:x}-{:x}", code.from, code.to))?;
        let length = usize::try_from(code.to - code.from).map_err(io::Error::other)?;
        let (mut in_file, mut in_memory) = (vec![0; length], vec![0; length]);
        let known = read_up_to(&file, &mut in_file, code.offset)?;
        // Pages after the end of the file cannot be read.
        in_memory.truncate(known);
        memory.read_exact_at(&mut in_memory, code.from)?;
        let bytes = (0..).zip(in_file.iter().zip(&in_memory));
        changed.extend(bytes.filter(|(_, (file, memory))| file != memory).map(|(at, (file, memory))| {
            ChangedByte {
                file: code.name.to_owned(),
                offset: code.offset + at,
                address: code.from + at,
                in_file: *file,
                in_memory: *memory,
            }
        }));
    }
    Ok(changed)
}

/// Fails the test if a process's code differs from its files, and shows the first differences.
pub fn assert_code_unchanged(pid: u32, when: &str) {
    let changed = changed_code(pid).unwrap_or_else(|error| panic!("code of process {pid}: {error}"));
    let first: Vec<String> = changed.iter().take(8).map(ToString::to_string).collect();
    assert!(changed.is_empty(), "{when}: {} bytes of code differ: {first:#?}", changed.len());
}

/// An executable mapping of a file.
struct Code<'a> {
    from: u64,
    to: u64,
    offset: u64,
    name: &'a str,
}

impl Code<'_> {
    /// Parses a line of `/proc/PID/maps`; `None` if it is no executable mapping of a file.
    fn parse(line: &str) -> Option<Code<'_>> {
        let mut words = line.split_ascii_whitespace();
        let (from, to) = words.next()?.split_once('-')?;
        let (rights, offset, _device, inode) = (words.next()?, words.next()?, words.next()?, words.next()?);
        if rights.as_bytes().get(2) != Some(&b'x') || inode == "0" {
            return None;
        }
        let number = |text: &str| u64::from_str_radix(text, 16).ok();
        let name = line.find('/').and_then(|at| line.get(at..)).unwrap_or_default();
        Some(Code { from: number(from)?, to: number(to)?, offset: number(offset)?, name })
    }
}

/// Fills `buffer` with the file's bytes from `offset` on, and returns the number of bytes.
fn read_up_to(file: &File, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
    let mut known = 0;
    while known < buffer.len() {
        match file.read_at(&mut buffer[known..], offset + known as u64)? {
            0 => break,
            read => known += read,
        }
    }
    Ok(known)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Background, shell};
    use std::time::Duration;

    #[test]
    fn an_untouched_program_has_no_changed_code() {
        let mut reader = Background::must_start(&mut shell("echo here; read never"));
        assert_eq!(reader.line(Duration::from_secs(60)).unwrap(), "here");
        assert_eq!(changed_code(reader.pid()).unwrap(), []);
        assert_code_unchanged(std::process::id(), "of this very test");
    }

    #[test]
    fn only_mappings_of_files_with_code_are_parsed_as_code() {
        let code =
            Code::parse("7f00-8f00 r-xp 00002000 fe:00 1234     /usr/lib/my lib.so (deleted)").unwrap();
        assert_eq!((code.from, code.to, code.offset), (0x7f00, 0x8f00, 0x2000));
        assert_eq!(code.name, "/usr/lib/my lib.so (deleted)");
        for other in [
            "7f00-8f00 rw-p 00002000 fe:00 1234     /usr/lib/a.so",
            "7fff-8fff --xp 00000000 00:00 0        [uprobes]",
            "7fff-8fff r-xp 00000000 00:00 0        [vdso]",
            "nonsense",
        ] {
            assert!(Code::parse(other).is_none(), "{other}");
        }
    }

    #[test]
    fn a_changed_byte_of_code_is_found_with_its_address() {
        // The program overwrites a byte of its own code, as a debugger would. The program does not execute that byte
        // before its end.
        let source = "f=open('/proc/self/maps').read().splitlines(); \
            a=next(int(l.split('-')[0],16) for l in f if ' r-xp ' in l and '/libc' in l); \
            m=open('/proc/self/mem','r+b',0); m.seek(a); b=m.read(1)[0]; m.seek(a); m.write(bytes([b^255])); \
            print(a,flush=True); input()";
        let mut command = std::process::Command::new("python3");
        let Ok(mut writer) = Background::start(command.args(["-c", source])) else { return };
        let Ok(address) = writer.line(Duration::from_secs(60)) else { return };
        let changed = changed_code(writer.pid()).unwrap();
        assert_eq!(changed.len(), 1, "{changed:?}");
        assert_eq!(changed[0].address.to_string(), address);
        assert_eq!(changed[0].in_memory, changed[0].in_file ^ 255);
    }
}
