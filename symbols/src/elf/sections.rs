//! Reads or maps the bytes of debug sections, and unpacks compressed ones.

use super::elf_file::{ElfFile, Section};
use crate::answer::Reason;
use crate::sandbox::Mapping;
use gimli::DwarfSections;
use object::{CompressedData, CompressionFormat};
use std::ops::Deref;

/// Largest number of unpacked bytes of debug information, in all sections of one file together.
const MAX_BYTES: u64 = 4 << 30;
/// Largest ratio of unpacked to compressed bytes, which is the limit of DEFLATE. Without this check, a small file could
/// claim much memory.
const MOST_RATIO: u64 = 1032;

/// Bytes of a section.
#[derive(Debug)]
pub enum Bytes {
    /// Read or unpacked.
    Read(Vec<u8>),
    /// Mapped from the file.
    Mapped(Mapping),
}

impl Default for Bytes {
    fn default() -> Bytes {
        Bytes::Read(Vec::new())
    }
}

impl Deref for Bytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Bytes::Read(bytes) => bytes,
            Bytes::Mapped(map) => map,
        }
    }
}

/// The number of bytes that may still be read of a file.
#[derive(Clone, Copy, Debug)]
pub struct Budget(u64);

impl Default for Budget {
    fn default() -> Budget {
        Budget(MAX_BYTES)
    }
}

/// Whether the file has debug information, compressed or not.
pub fn has_debug_information(elf: &ElfFile) -> bool {
    find(elf, ".debug_info")
        .is_some_and(|section| section.kind != object::elf::SHT_NOBITS.0 && section.size > 0)
}

/// All debug sections of a file.
pub fn debug_sections(elf: &ElfFile) -> Result<DwarfSections<Bytes>, Reason> {
    let mut budget = Budget::default();
    DwarfSections::load(|id| named(elf, id.name(), &mut budget))
}

/// The debug sections of a `.dwo` file.
pub fn split_sections(elf: &ElfFile) -> Result<DwarfSections<Bytes>, Reason> {
    let mut budget = Budget::default();
    DwarfSections::load(|id| match id.dwo_name() {
        Some(name) => named(elf, name, &mut budget),
        None => Ok(Bytes::default()),
    })
}

/// The section with that name, unpacked. Empty if there is no such section.
pub fn named(elf: &ElfFile, name: &str, budget: &mut Budget) -> Result<Bytes, Reason> {
    match find(elf, name) {
        Some(section) => read(elf, section, budget),
        None => Ok(Bytes::default()),
    }
}

/// The section with that name (`.debug_info`), or with the name that older compilers give a compressed section
/// (`.zdebug_info`).
fn find<'a>(elf: &'a ElfFile, name: &str) -> Option<&'a Section> {
    elf.section(name.as_bytes()).or_else(|| {
        let old = format!(".z{}", name.strip_prefix('.')?);
        elf.section(old.as_bytes())
    })
}

fn read(elf: &ElfFile, section: &Section, budget: &mut Budget) -> Result<Bytes, Reason> {
    if section.kind == object::elf::SHT_NOBITS.0 || section.size == 0 {
        return Ok(Bytes::default());
    }
    if section.size > budget.0 {
        return Err(Reason::TooLarge);
    }
    let bytes = match elf.map(section.offset, section.size) {
        Some(map) => Bytes::Mapped(map),
        None => {
            let read = elf.section_bytes(section, "debug information", budget.0);
            Bytes::Read(read.map_err(|_| Reason::BadDebugInformation)?)
        }
    };
    let bytes = if section.flags & object::elf::SHF_COMPRESSED.0 != 0 {
        // ELF's compression header: kind (u32), padding (u32), size (u64), alignment (u64).
        let header: &[u8; 24] = bytes.first_chunk().ok_or(Reason::BadDebugInformation)?;
        let size = header[8..16].iter().rev().fold(0u64, |size, &byte| size << 8 | u64::from(byte));
        let kind = header[0];
        unpacked(&bytes[24..], kind, size, budget)?
    } else if section.name.starts_with(b".z") {
        // The older format has the text `ZLIB` and the size, big-endian.
        let header: &[u8; 12] = bytes.first_chunk().ok_or(Reason::BadDebugInformation)?;
        if header[..4] != *b"ZLIB" {
            return Err(Reason::BadDebugInformation);
        }
        let size = header[4..12].iter().fold(0u64, |size, &byte| size << 8 | u64::from(byte));
        unpacked(&bytes[12..], 1, size, budget)?
    } else {
        bytes
    };
    budget.0 = budget.0.saturating_sub(bytes.len() as u64);
    Ok(bytes)
}

fn unpacked(data: &[u8], kind: u8, size: u64, budget: &Budget) -> Result<Bytes, Reason> {
    if size > budget.0 || size / MOST_RATIO > data.len() as u64 {
        return Err(Reason::TooLarge);
    }
    let bytes = match kind {
        1 => {
            let packed = CompressedData { format: CompressionFormat::Zlib, data, uncompressed_size: size };
            packed.decompress().map_err(|_| Reason::BadDebugInformation)?.into_owned()
        }
        2 => {
            let size = usize::try_from(size).map_err(|_| Reason::TooLarge)?;
            zstd::bulk::decompress(data, size).map_err(|_| Reason::BadDebugInformation)?
        }
        _ => return Err(Reason::BadDebugInformation),
    };
    if bytes.len() as u64 != size {
        return Err(Reason::BadDebugInformation);
    }
    Ok(Bytes::Read(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Such a section of 15 kB once took 2.5 GB, because the memory was reserved before anything was unpacked.
    #[test]
    fn a_packed_section_that_claims_an_impossible_size_takes_no_memory() {
        for kind in [1, 2] {
            let claimed = unpacked(&[0; 1000], kind, 3 << 30, &Budget::default());
            assert_eq!(claimed.err(), Some(Reason::TooLarge), "{kind}");
            let possible = unpacked(&[0; 1000], kind, 900_000, &Budget::default());
            assert_eq!(possible.err(), Some(Reason::BadDebugInformation), "{kind}");
        }
    }
}
