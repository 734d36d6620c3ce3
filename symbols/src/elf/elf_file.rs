//! One ELF file, opened once and read piece by piece: headers, segments, sections, address ↔ file offset.
//!
//! The file is untrusted. The file stays open, so that later reads come from the same inode even if another file takes
//! its path. Only an expendable process maps the file ([`ElfFile::let_map`]). In other processes, a file that becomes
//! shorter must cause an error, and not a SIGBUS that ends the process.

use super::build_id::BuildId;
use crate::error::SymbolError;
use crate::sandbox::Mapping;
use object::Endianness;
use object::elf::{FileHeader64, ProgramHeader64, SectionHeader64};
use object::read::elf::{FileHeader as _, ProgramHeader as _, SectionHeader as _};
use std::fs::File;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Largest table of section names that is read, in bytes.
const MAX_SECTION_NAMES: u64 = 16 << 20;
/// Largest note section that is read, in bytes.
const MAX_NOTES: u64 = 1 << 20;
/// Longest path of a loader, in bytes.
const MAX_LOADER_NAME: u64 = 4096;
/// Section numbers from here on need ELF's extended numbering. No linked program has that many sections.
const MAX_SECTIONS: u16 = 0xff00;

/// An open ELF file.
#[derive(Debug)]
pub struct ElfFile {
    file: File,
    path: PathBuf,
    len: u64,
    may_map: bool,
    /// Whether the file is x86-64 code, the only kind whose instructions are decoded.
    pub is_x86_64: bool,
    /// Address of the first instruction; 0 if there is none.
    pub entry: u64,
    /// Loaded segments.
    pub segments: Vec<Segment>,
    /// Sections; empty if the file has no section table.
    pub sections: Vec<Section>,
    /// Whether a segment or the stack is both writable and executable.
    pub writes_code: bool,
    /// Build-id of the file, if it has one.
    pub build_id: Option<BuildId>,
    /// Size of the file's block of thread-local variables, aligned, in bytes. In a static program the block is just
    /// below the thread pointer.
    pub thread_local_bytes: Option<u64>,
    /// The loader that the file names; a statically linked program names none.
    pub interpreter: Option<PathBuf>,
}

/// A `PT_LOAD` segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// First address, as linked.
    pub address: u64,
    /// The segment's offset in the file.
    pub offset: u64,
    /// Number of bytes that come from the file.
    pub file_size: u64,
    /// Number of bytes in memory: the bytes from the file, then zeros.
    pub memory_size: u64,
    /// Whether the segment contains instructions.
    pub executable: bool,
}

/// A section.
#[derive(Clone, Debug)]
pub struct Section {
    /// Name, as in the file.
    pub name: Vec<u8>,
    /// The section's type: `SHT_*`.
    pub kind: u32,
    /// The section's flags: `SHF_*`.
    pub flags: u64,
    /// First address; 0 if the section is not loaded.
    pub address: u64,
    /// Offset in the file.
    pub offset: u64,
    /// Size in bytes.
    pub size: u64,
    /// Index of a related section.
    pub link: u32,
}

impl Section {
    /// Whether the section contains instructions.
    pub fn is_executable(&self) -> bool {
        self.flags & object::elf::SHF_EXECINSTR.0 != 0
    }

    /// Whether the address lies in the section.
    pub fn contains(&self, address: u64) -> bool {
        self.address != 0 && address.checked_sub(self.address).is_some_and(|at| at < self.size)
    }
}

impl ElfFile {
    /// Opens a file and reads its headers. A pipe or device is refused without waiting for it.
    pub fn open(path: &Path) -> Result<ElfFile, SymbolError> {
        let file = open_plain(path)?;
        ElfFile::from_file(file, path)
    }

    /// Reads the headers of an open file; `path` is only for messages.
    pub fn from_file(file: File, path: &Path) -> Result<ElfFile, SymbolError> {
        let metadata =
            file.metadata().map_err(|source| SymbolError::Open { path: path.to_owned(), source })?;
        if !metadata.is_file() {
            return Err(SymbolError::NotRegular { path: path.to_owned() });
        }
        let mut elf = ElfFile {
            file,
            path: path.to_owned(),
            len: metadata.len(),
            may_map: false,
            is_x86_64: false,
            entry: 0,
            segments: Vec::new(),
            sections: Vec::new(),
            writes_code: false,
            build_id: None,
            thread_local_bytes: None,
            interpreter: None,
        };
        elf.read_headers()?;
        Ok(elf)
    }

    /// Like [`ElfFile::from_file`], for a debug file of this file. The debug file may be mapped if this file may be
    /// mapped.
    pub fn open_companion(&self, file: File, path: &Path) -> Result<ElfFile, SymbolError> {
        let mut elf = ElfFile::from_file(file, path)?;
        elf.may_map = self.may_map;
        Ok(elf)
    }

    /// From now on, large parts are mapped instead of read. Only an expendable process may call this function.
    pub fn let_map(&mut self) {
        self.may_map = true;
    }

    /// Whether parts of the file may be mapped, because this process is expendable.
    pub fn may_map(&self) -> bool {
        self.may_map
    }

    /// Maps `size` bytes at `offset`. `None` if mapping is not allowed or fails.
    pub fn map(&self, offset: u64, size: u64) -> Option<Mapping> {
        if !self.may_map || size == 0 {
            return None;
        }
        Mapping::new(&self.file, offset, size).ok()
    }

    /// The file's path in messages.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The open file.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Reads `size` bytes at `offset`. A `size` above `limit` is an error, whose message calls the bytes `what`.
    pub fn read(
        &self,
        offset: u64,
        size: u64,
        what: &'static str,
        limit: u64,
    ) -> Result<Vec<u8>, SymbolError> {
        if size > limit {
            return Err(SymbolError::TooLarge { path: self.path.clone(), what, limit });
        }
        if offset.checked_add(size).is_none_or(|end| end > self.len) {
            return Err(SymbolError::not_elf(&self.path, format!("{what} reaches beyond its end")));
        }
        let mut bytes = vec![0; usize::try_from(size).unwrap_or(0)];
        self.file.read_exact_at(&mut bytes, offset).map_err(|error| SymbolError::Read {
            path: self.path.clone(),
            what: format!("{what}: {error}"),
        })?;
        Ok(bytes)
    }

    /// The section of that name.
    pub fn section(&self, name: &[u8]) -> Option<&Section> {
        self.sections.iter().find(|section| section.name == name)
    }

    /// The sections with instructions, at most 1,024. An honest file has about ten.
    pub fn code_sections(&self) -> Vec<&Section> {
        self.sections
            .iter()
            .filter(|section| section.is_executable() && section.address != 0)
            .take(1024)
            .collect()
    }

    /// A section's bytes in the file, compressed or not. A section of type `SHT_NOBITS` has no bytes in the file.
    pub fn section_bytes(
        &self,
        section: &Section,
        what: &'static str,
        limit: u64,
    ) -> Result<Vec<u8>, SymbolError> {
        if section.kind == object::elf::SHT_NOBITS.0 {
            return Ok(Vec::new());
        }
        self.read(section.offset, section.size, what, limit)
    }

    /// The file offset of the byte at a linked address. `None` if the byte does not come from the file.
    pub fn offset_of(&self, address: u64) -> Option<u64> {
        self.segments.iter().find_map(|segment| segment.offset_of(address))
    }

    /// Like [`ElfFile::offset_of`], for instructions only.
    pub fn code_offset_of(&self, address: u64) -> Option<u64> {
        self.segments
            .iter()
            .filter(|segment| segment.executable)
            .find_map(|segment| segment.offset_of(address))
    }

    /// The linked address of the instruction at a file offset.
    pub fn code_address_of(&self, offset: u64) -> Option<u64> {
        self.segments.iter().filter(|segment| segment.executable).find_map(|segment| {
            let at = offset.checked_sub(segment.offset).filter(|&at| at < segment.file_size)?;
            segment.address.checked_add(at)
        })
    }

    /// Returns an error for all files except little-endian 64-bit files.
    fn check_class(&self, start: &[u8]) -> Result<(), SymbolError> {
        let not_elf = |reason: &str| Err(SymbolError::not_elf(&self.path, reason));
        let unsupported = |what| Err(SymbolError::Unsupported { path: self.path.clone(), what });
        if !start.starts_with(b"\x7fELF") {
            return not_elf("it does not start with the ELF mark");
        }
        match (start.get(4), start.get(5)) {
            (Some(2), Some(1)) => Ok(()),
            (Some(1), _) => unsupported("a 32-bit program"),
            (Some(2), Some(2)) => unsupported("a big-endian program"),
            _ => not_elf("unknown class"),
        }
    }

    fn read_headers(&mut self) -> Result<(), SymbolError> {
        let not_elf = |reason: &str| SymbolError::not_elf(&self.path, reason);
        let start = self.read(0, self.len.min(64), "header", 64)?;
        self.check_class(&start)?;
        let header =
            FileHeader64::<Endianness>::parse(&*start).map_err(|error| not_elf(&error.to_string()))?;
        let endian = header.endian().map_err(|error| not_elf(&error.to_string()))?;
        let (is_x86_64, entry) = (header.e_machine(endian) == object::elf::EM_X86_64, header.e_entry(endian));

        let segments = self.table::<ProgramHeader64<Endianness>>(
            header.e_phoff(endian),
            header.e_phnum(endian),
            "program headers",
        )?;
        let sections = self.table::<SectionHeader64<Endianness>>(
            header.e_shoff(endian),
            header.e_shnum(endian),
            "section headers",
        )?;
        let names = match sections.get(usize::from(header.e_shstrndx(endian).0)) {
            Some(section) => self.read(
                section.sh_offset(endian),
                section.sh_size(endian),
                "section names",
                MAX_SECTION_NAMES,
            )?,
            None => Vec::new(),
        };
        let of_kind = |kind| segments.iter().filter(move |header| header.p_type(endian) == kind);
        let in_file =
            |header: &ProgramHeader64<Endianness>| (header.p_offset(endian), header.p_filesz(endian));
        let interpreter = of_kind(object::elf::PT_INTERP).next().map(in_file);
        let interpreter = interpreter.map(|(offset, size)| self.loader_name(offset, size));
        let mut notes: Vec<(u64, u64)> = of_kind(object::elf::PT_NOTE).map(in_file).collect();
        let thread_local_bytes = of_kind(object::elf::PT_TLS).next_back().and_then(|header| {
            let align = header.p_align(endian).clamp(1, 1 << 20);
            header.p_memsz(endian).checked_next_multiple_of(align)
        });
        let loaded = of_kind(object::elf::PT_LOAD).map(|header| Segment {
            address: header.p_vaddr(endian),
            offset: header.p_offset(endian),
            file_size: header.p_filesz(endian),
            memory_size: header.p_memsz(endian),
            executable: header.p_flags(endian).0 & object::elf::PF_X.0 != 0,
        });
        let loaded: Vec<Segment> = loaded.collect();
        let both = object::elf::PF_W.0 | object::elf::PF_X.0;
        let writes_code = of_kind(object::elf::PT_LOAD)
            .chain(of_kind(object::elf::PT_GNU_STACK))
            .any(|header| header.p_flags(endian).0 & both == both);
        let sections: Vec<Section> = sections
            .iter()
            .map(|header| Section {
                name: text_at(&names, header.sh_name(endian), 256).to_vec(),
                kind: header.sh_type(endian).0,
                flags: header.sh_flags(endian).0,
                address: header.sh_addr(endian),
                offset: header.sh_offset(endian),
                size: header.sh_size(endian),
                link: header.sh_link(endian),
            })
            .collect();
        let note_sections = sections.iter().filter(|section| section.kind == object::elf::SHT_NOTE.0);
        notes.extend(note_sections.map(|section| (section.offset, section.size)));
        // If the notes cannot be read, the file counts as a file without a build-id.
        let build_id = notes.iter().take(64).find_map(|&(offset, size)| {
            BuildId::in_notes(&self.read(offset, size, "notes", MAX_NOTES).ok()?)
        });
        if loaded.len() > 1024 {
            return Err(not_elf("too many segments"));
        }
        self.is_x86_64 = is_x86_64;
        self.entry = entry;
        self.segments = loaded;
        self.sections = sections;
        self.writes_code = writes_code;
        self.build_id = build_id;
        self.thread_local_bytes = thread_local_bytes;
        self.interpreter = interpreter;
        Ok(())
    }

    /// The loader's name. Empty if the name cannot be read: the program still counts as one with a loader.
    fn loader_name(&self, offset: u64, size: u64) -> PathBuf {
        let name = self.read(offset, size, "the loader's name", MAX_LOADER_NAME).unwrap_or_default();
        let name = name.split(|&byte| byte == 0).next().unwrap_or_default();
        PathBuf::from(std::ffi::OsStr::from_bytes(name))
    }

    fn table<T: object::Pod + Clone>(
        &self,
        offset: u64,
        count: u16,
        what: &'static str,
    ) -> Result<Vec<T>, SymbolError> {
        if offset == 0 || count == 0 {
            return Ok(Vec::new());
        }
        if count >= MAX_SECTIONS {
            return Err(SymbolError::not_elf(&self.path, format!("too many {what}")));
        }
        let size = (size_of::<T>() as u64).saturating_mul(u64::from(count));
        let bytes = self.read(offset, size, what, 8 << 20)?;
        let (entries, _) = object::pod::slice_from_bytes::<T>(&bytes, usize::from(count))
            .map_err(|()| SymbolError::not_elf(&self.path, format!("{what} cannot be read")))?;
        Ok(entries.to_vec())
    }
}

impl Segment {
    fn offset_of(&self, address: u64) -> Option<u64> {
        let at = address.checked_sub(self.address).filter(|&at| at < self.file_size)?;
        self.offset.checked_add(at)
    }
}

/// Opens a file for reading. Returns at once if the file is a pipe or device.
pub fn open_plain(path: &Path) -> Result<File, SymbolError> {
    File::options()
        .read(true)
        .custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY)
        .open(path)
        .map_err(|source| SymbolError::Open { path: path.to_owned(), source })
}

/// The NUL-terminated text at an offset of a string table, cut to `max` bytes. Empty if the offset is outside the
/// table.
pub fn text_at(table: &[u8], offset: u32, max: usize) -> &[u8] {
    let rest = table.get(offset as usize..).unwrap_or_default();
    let rest = &rest[..rest.len().min(max)];
    // The search for the NUL must be fast: names of C++ are long, and a browser has a million of them.
    memchr::memchr(0, rest).map_or(rest, |end| &rest[..end])
}
