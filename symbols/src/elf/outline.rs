//! The outline of an ELF file: the part of an untrusted binary that longpole itself reads, with all its rights.
//!
//! A process without rights reads all other parts ([`crate::sandbox`]). longpole needs the outline before that process
//! starts, or where starting a process would cost too much for so little. So the outline's code must be harmless by
//! design. This code uses no other parser, and the file decides no size of a loop or of memory. The code reads at most
//! [`MOST_BYTES`] at a time, and only compares numbers from the file or adds them with a check. A truncated or wrong
//! file counts as a file without these parts.

use super::build_id::BuildId;
use super::elf_file::Segment;
use std::ffi::OsStr;
use std::fs::File;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

/// Largest number of bytes that are read at a time.
const MOST_BYTES: usize = 64 << 10;
/// Largest number of program headers that are read. Linkers make about a dozen.
const MOST_SEGMENTS: usize = 256;
/// Largest number of note segments or sections that are read, and of libraries that a program links.
const MOST_NOTES: usize = 32;
const MOST_NEEDED: usize = 512;
/// Longest path of a loader, and longest name of a library, in bytes.
const LONGEST_PATH: usize = 4096;
const LONGEST_NAME: usize = 255;

const HEADER: usize = 64;
const PROGRAM_HEADER: usize = 56;
const SECTION_HEADER: usize = 64;
const DYNAMIC_ENTRY: usize = 16;

/// The outline of an ELF file; see the module's documentation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outline {
    /// The field `e_machine` of the file header.
    pub machine: u16,
    /// Loaded segments.
    pub segments: Vec<Segment>,
    /// Build-id of the file, if it has one.
    pub build_id: Option<BuildId>,
    /// The loader that the file names; a statically linked program names none. Empty if the name cannot be read.
    pub interpreter: Option<PathBuf>,
    /// Offset and size of the dynamic section.
    dynamic: Option<(u64, u64)>,
    /// Linked address, size and alignment of a thread's block of thread-local variables.
    pub(super) tls: Option<(u64, u64, u64)>,
}

impl Outline {
    /// `e_machine` of x86-64.
    pub const X86_64: u16 = 62;
    /// `e_machine` of 64-bit ARM.
    pub const AARCH64: u16 = 183;

    /// Opens a file. Returns at once if it is a pipe or device. `None`: the file cannot be opened, or is not a regular
    /// 64-bit little-endian ELF file.
    pub fn open(path: &Path) -> Option<(File, Outline)> {
        let flags = libc::O_NONBLOCK | libc::O_NOCTTY;
        let file = File::options().read(true).custom_flags(flags).open(path).ok()?;
        let outline = Outline::of(&file)?;
        Some((file, outline))
    }

    /// The outline of an open file; see [`Outline::open`].
    pub fn of(file: &File) -> Option<Outline> {
        if !file.metadata().ok()?.is_file() {
            return None;
        }
        let header = read(file, 0, HEADER);
        let is_ours = header.starts_with(b"\x7fELF") && header.get(4..6) == Some(&[2, 1]);
        if !is_ours || header.len() < HEADER {
            return None;
        }
        let mut outline = Outline { machine: u16_at(&header, 18)?, ..Outline::default() };
        let mut notes: Vec<(u64, u64)> = Vec::new();
        for entry in &entries(file, u64_at(&header, 32)?, u16_at(&header, 56)?, PROGRAM_HEADER, MOST_SEGMENTS)
        {
            outline.add(file, entry, &mut notes);
        }
        outline.build_id = build_id(file, &notes).or_else(|| {
            // A file that is not for loading (a debug file) has notes only in sections.
            let most = MOST_BYTES / SECTION_HEADER;
            let sections = entries(file, u64_at(&header, 40)?, u16_at(&header, 60)?, SECTION_HEADER, most);
            let notes: Vec<(u64, u64)> = sections.iter().filter_map(|entry| note_section(entry)).collect();
            build_id(file, &notes)
        });
        Some(outline)
    }

    fn add(&mut self, file: &File, entry: &[u8], notes: &mut Vec<(u64, u64)>) {
        const LOAD: u32 = 1;
        const DYNAMIC: u32 = 2;
        const INTERPRETER: u32 = 3;
        const NOTE: u32 = 4;
        const THREAD_LOCAL: u32 = 7;
        const EXECUTABLE: u32 = 1;
        let (Some(kind), Some(flags)) = (u32_at(entry, 0), u32_at(entry, 4)) else { return };
        let (Some(offset), Some(address)) = (u64_at(entry, 8), u64_at(entry, 16)) else { return };
        let (Some(file_size), Some(memory_size)) = (u64_at(entry, 32), u64_at(entry, 40)) else { return };
        match kind {
            LOAD => {
                let executable = flags & EXECUTABLE != 0;
                self.segments.push(Segment { address, offset, file_size, memory_size, executable });
            }
            NOTE => notes.push((offset, file_size)),
            THREAD_LOCAL if self.tls.is_none() => {
                self.tls = u64_at(entry, 48).map(|align| (address, memory_size, align));
            }
            DYNAMIC if self.dynamic.is_none() => self.dynamic = Some((offset, file_size)),
            INTERPRETER if self.interpreter.is_none() => {
                let longest = usize::try_from(file_size).unwrap_or(usize::MAX).min(LONGEST_PATH);
                self.interpreter = Some(PathBuf::from(OsStr::from_bytes(&text(file, offset, longest))));
            }
            _ => {}
        }
    }

    /// The file offset of the byte at a linked address, if that byte is in an executable segment.
    pub fn code_offset_of(&self, address: u64) -> Option<u64> {
        self.segments.iter().filter(|segment| segment.executable).find_map(|segment| place(segment, address))
    }

    /// The load bias of a process that has mapped `file_offset`, in an executable segment, at `start`: the number that
    /// the process adds to linked addresses. The number wraps around.
    pub fn bias(&self, start: u64, file_offset: u64) -> Option<u64> {
        let mut code = self.segments.iter().filter(|segment| segment.executable);
        code.find_map(|segment| bias(segment, start, file_offset))
    }

    /// Like `Outline::bias`, for any loaded segment.
    pub fn bias_of(&self, start: u64, file_offset: u64) -> Option<u64> {
        self.segments.iter().find_map(|segment| bias(segment, start, file_offset))
    }

    /// Names of the libraries that the file links. Names that are not UTF-8 are omitted.
    pub fn needed(&self, file: &File) -> Vec<String> {
        const NEEDED: u64 = 1;
        self.dynamic_texts(file, &[NEEDED], LONGEST_NAME)
    }

    /// The folders in which the loader searches the file's libraries first, separated by colons. `$ORIGIN` means the
    /// folder of the file.
    pub fn run_paths(&self, file: &File) -> Vec<String> {
        const RPATH: u64 = 15;
        const RUNPATH: u64 = 29;
        self.dynamic_texts(file, &[RPATH, RUNPATH], LONGEST_PATH)
    }

    /// The entries of the dynamic section: tag and value.
    pub(super) fn dynamic_entries(&self, file: &File) -> Vec<(u64, u64)> {
        let Some((offset, size)) = self.dynamic else { return Vec::new() };
        let size = usize::try_from(size).unwrap_or(usize::MAX).min(MOST_BYTES);
        let bytes = read(file, offset, size);
        let entries = bytes.as_chunks::<DYNAMIC_ENTRY>().0.iter();
        entries.filter_map(|entry| Some((u64_at(entry, 0)?, u64_at(entry, 8)?))).collect()
    }

    fn dynamic_texts(&self, file: &File, tags: &[u64], longest: usize) -> Vec<String> {
        const NAMES: u64 = 5;
        let all = self.dynamic_entries(file);
        let entries = || all.iter().copied();
        let names = entries().find(|(tag, _)| *tag == NAMES);
        let names = names.and_then(|(_, at)| self.segments.iter().find_map(|segment| place(segment, at)));
        let Some(names) = names else { return Vec::new() };
        let name = |(_, at): (u64, u64)| String::from_utf8(text(file, names.checked_add(at)?, longest)).ok();
        entries().filter(|(tag, _)| tags.contains(tag)).take(MOST_NEEDED).filter_map(name).collect()
    }
}

fn bias(segment: &Segment, start: u64, file_offset: u64) -> Option<u64> {
    const PAGE: u64 = 4096;
    let first = segment.offset - segment.offset % PAGE;
    let end = segment.offset.saturating_add(segment.file_size);
    if !(first..end.max(first.saturating_add(1))).contains(&file_offset) {
        return None;
    }
    // `start` and the linked address are equal modulo the page size, because the kernel maps whole pages only.
    let linked = segment.address.wrapping_add(file_offset.wrapping_sub(segment.offset));
    Some(start.wrapping_sub(linked))
}

pub(super) fn place(segment: &Segment, address: u64) -> Option<u64> {
    let at = address.checked_sub(segment.address).filter(|&at| at < segment.file_size)?;
    segment.offset.checked_add(at)
}

/// Offset and size of a section of type `SHT_NOTE`; `None` for other types.
fn note_section(entry: &[u8]) -> Option<(u64, u64)> {
    const NOTE: u32 = 7;
    (u32_at(entry, 4)? == NOTE).then_some((u64_at(entry, 24)?, u64_at(entry, 32)?))
}

fn build_id(file: &File, notes: &[(u64, u64)]) -> Option<BuildId> {
    notes.iter().take(MOST_NOTES).find_map(|&(offset, size)| {
        let size = usize::try_from(size).unwrap_or(usize::MAX).min(MOST_BYTES);
        BuildId::in_notes(&read(file, offset, size))
    })
}

/// Reads up to `most` bytes. The result is shorter at the end of the file.
pub(super) fn read(file: &File, offset: u64, most: usize) -> Vec<u8> {
    let mut bytes = vec![0; most.min(MOST_BYTES)];
    let mut count = 0;
    while let Some(rest) = bytes.get_mut(count..).filter(|rest| !rest.is_empty()) {
        let Some(at) = offset.checked_add(count as u64) else { break };
        match file.read_at(rest, at) {
            Ok(0) | Err(_) => break,
            Ok(read) => count = count.saturating_add(read),
        }
    }
    bytes.truncate(count);
    bytes
}

/// The first complete entries of a table, up to `most`.
fn entries(file: &File, offset: u64, count: u16, size: usize, most: usize) -> Vec<Vec<u8>> {
    let bytes = read(file, offset, usize::from(count).min(most).saturating_mul(size));
    let entries = bytes.chunks_exact(size).map(<[u8]>::to_vec);
    if offset == 0 { Vec::new() } else { entries.collect() }
}

/// Reads text up to the first NUL.
fn text(file: &File, offset: u64, longest: usize) -> Vec<u8> {
    let bytes = read(file, offset, longest);
    bytes.split(|&byte| byte == 0).next().unwrap_or_default().to_vec()
}

pub(super) fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

pub(super) fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

pub(super) fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ElfFile;
    use std::io::Write as _;

    const REAL: [&str; 4] =
        ["/proc/self/exe", "/bin/sh", "/lib/x86_64-linux-gnu/libc.so.6", "/lib/x86_64-linux-gnu/libm.so.6"];

    /// Two independent implementations must agree: the parser without rights reads the same headers with other code.
    #[test]
    fn outlines_of_real_files_are_those_of_the_full_parser() {
        for path in REAL.map(Path::new).into_iter().filter(|path| path.exists()) {
            let (file, outline) = Outline::open(path).expect("an ELF file");
            let elf = ElfFile::open(path).expect("an ELF file");
            assert_eq!(outline.build_id, elf.build_id, "{}", path.display());
            assert_eq!(outline.interpreter, elf.interpreter, "{}", path.display());
            assert_eq!(outline.machine == Outline::X86_64, elf.is_x86_64);
            assert_eq!(outline.segments, elf.segments);
            let code = elf.segments.iter().find(|segment| segment.executable).expect("instructions");
            assert_eq!(outline.code_offset_of(code.address), elf.code_offset_of(code.address));
            assert_eq!(outline.bias(0x10_0000, code.offset), Some(0x10_0000u64.wrapping_sub(code.address)));
            if path != Path::new("/lib/x86_64-linux-gnu/libc.so.6") {
                let needed = outline.needed(&file);
                assert!(needed.iter().any(|name| name.starts_with("libc.")), "{needed:?}");
            }
        }
    }

    #[test]
    fn a_file_that_is_no_64_bit_elf_file_has_no_outline() {
        let folder = tempfile::tempdir().expect("folder");
        let path = folder.path().join("file");
        for bytes in
            [&b""[..], b"\x7fELF", b"#!/bin/sh\n", &[0x7f; 200], b"\x7fELF\x01\x01", b"\x7fELF\x02\x02"]
        {
            let mut bytes = bytes.to_vec();
            std::fs::write(&path, &bytes).expect("written");
            assert_eq!(Outline::open(&path).map(|(_, outline)| outline), None, "{bytes:?}");
            bytes.resize(63, 0);
            std::fs::write(&path, &bytes).expect("written");
            assert_eq!(Outline::open(&path).map(|(_, outline)| outline), None);
        }
        assert!(Outline::open(Path::new("/dev/zero")).is_none() && Outline::open(folder.path()).is_none());
        let fifo = folder.path().join("fifo");
        let mode = rustix::fs::Mode::from_raw_mode(0o600);
        rustix::fs::mknodat(rustix::fs::CWD, &fifo, rustix::fs::FileType::Fifo, mode, 0).expect("fifo");
        assert!(Outline::open(&fifo).is_none(), "and nobody waited for a writer");
    }

    /// The file has the largest possible number in each count and offset of its headers.
    #[test]
    fn a_file_with_impossible_headers_has_a_bounded_outline() {
        let mut bytes = std::fs::read("/bin/sh").expect("a shell");
        bytes.truncate(1 << 16);
        for (at, size) in [(32usize, 8usize), (40, 8), (56, 2), (60, 2)] {
            let mut lie = bytes.clone();
            lie[at..at + size].fill(0xff);
            let mut file = tempfile::tempfile().expect("file");
            file.write_all(&lie).expect("written");
            let outline = Outline::of(&file).expect("still one");
            assert!(outline.segments.len() <= MOST_SEGMENTS);
        }
        // Sets every size and offset of every program header.
        for header in 0..8 {
            for field in [8, 16, 32, 40] {
                let mut lie = bytes.clone();
                let at = 64 + header * PROGRAM_HEADER + field;
                lie[at..at + 8].fill(0xff);
                let mut file = tempfile::tempfile().expect("file");
                file.write_all(&lie).expect("written");
                let outline = Outline::of(&file).expect("still one");
                let _ = (
                    outline.needed(&file),
                    outline.bias(u64::MAX, u64::MAX),
                    outline.code_offset_of(u64::MAX),
                );
            }
        }
    }

    /// Takes real files, changes a few bytes and cuts the file. No such file may cause a panic or an unbounded result.
    #[test]
    fn ten_thousand_changed_files_never_panic_and_are_bounded() {
        let mut seed = 0x9e37_79b9_7f4a_7c15u64;
        let mut random = |below: usize| {
            seed ^= seed << 13;
            seed ^= seed >> 7;
            seed ^= seed << 17;
            (seed % below.max(1) as u64) as usize
        };
        for path in REAL.map(Path::new).into_iter().filter(|path| path.exists()) {
            let mut whole = vec![0; 16 << 10];
            let count = File::open(path).and_then(|file| file.read_at(&mut whole, 0)).expect("read");
            whole.truncate(count);
            let file = tempfile::tempfile().expect("file");
            for _ in 0..2500 {
                let mut bytes = whole.clone();
                for _ in 0..1 + random(8) {
                    // Three of four changes are in the headers.
                    let within = if random(4) == 0 { bytes.len() } else { 1024.min(bytes.len()) };
                    let at = random(within);
                    bytes[at] = [0, 0xff, 0x7f, random(256) as u8][random(4)];
                }
                bytes.truncate(if random(3) == 0 { random(bytes.len()) } else { bytes.len() });
                file.set_len(0).expect("emptied");
                file.write_all_at(&bytes, 0).expect("written");
                let Some(outline) = Outline::of(&file) else { continue };
                let needed = outline.needed(&file);
                assert!(outline.segments.len() <= MOST_SEGMENTS && needed.len() <= MOST_NEEDED);
                let longest = outline.interpreter.map_or(0, |path| path.as_os_str().len());
                assert!(longest <= LONGEST_PATH && needed.iter().all(|name| name.len() <= LONGEST_NAME));
            }
        }
    }
}
