//! Source lines and inline chains out of DWARF, for many addresses of one module at once.

use super::elf_file::{ElfFile, Section};
use super::name;
use super::resolve::{Frame, Reason};
use gimli::{DwarfSections, EndianSlice, LittleEndian};
use object::{CompressedData, CompressionFormat};
use rustc_hash::FxHashMap;

/// Largest amount of debug information read, decompressed, all sections together.
const MAX_BYTES: u64 = 2 << 30;
/// Deepest inlining accepted: addr2line follows it by recursion, and a hostile file could use up the stack.
const MAX_INLINE_DEPTH: usize = 400;
/// Most frames of one inline chain handed out.
const MAX_FRAMES: usize = 128;

type Slice<'a> = EndianSlice<'a, LittleEndian>;

/// A module's debug sections, decompressed.
pub struct DebugInformation {
    sections: DwarfSections<Vec<u8>>,
}

impl DebugInformation {
    /// Reads the debug sections of a file.
    pub fn read(elf: &ElfFile) -> Result<DebugInformation, Reason> {
        if elf.section(b".debug_info").or(elf.section(b".zdebug_info")).is_none() {
            return Err(Reason::NoDebugInformation);
        }
        let mut left = MAX_BYTES;
        let sections = DwarfSections::load(|id| {
            let Some(section) = elf.section(id.name().as_bytes()) else { return Ok(Vec::new()) };
            let bytes = read_section(elf, section, left)?;
            left = left.saturating_sub(bytes.len() as u64);
            Ok(bytes)
        })?;
        Ok(DebugInformation { sections })
    }

    /// A searcher over the sections.
    pub fn lines(&self) -> Result<Lines<'_>, Reason> {
        let dwarf = self.sections.borrow(|bytes| EndianSlice::new(bytes, LittleEndian));
        let context = addr2line::Context::from_dwarf(dwarf).map_err(|_| Reason::BadDebugInformation)?;
        Ok(Lines { context, depth_checked: FxHashMap::default() })
    }
}

fn read_section(elf: &ElfFile, section: &Section, left: u64) -> Result<Vec<u8>, Reason> {
    let bad = |_| Reason::BadDebugInformation;
    if section.size > left {
        return Err(Reason::TooLarge);
    }
    let bytes = elf.section_bytes(section, "debug information", left).map_err(bad)?;
    if section.flags & object::elf::SHF_COMPRESSED.0 == 0 {
        return Ok(bytes);
    }
    // ELF's compression header: kind (u32), padding (u32), size (u64), alignment (u64).
    let header: &[u8; 24] = bytes.first_chunk().ok_or(Reason::BadDebugInformation)?;
    let format = match header[0] {
        1 => CompressionFormat::Zlib,
        2 => CompressionFormat::Zstandard,
        _ => return Err(Reason::BadDebugInformation),
    };
    let size = header[8..16].iter().rev().fold(0u64, |size, &byte| size << 8 | u64::from(byte));
    if size > left {
        return Err(Reason::TooLarge);
    }
    let data = CompressedData { format, data: &bytes[24..], uncompressed_size: size };
    Ok(data.decompress().map_err(|_| Reason::BadDebugInformation)?.into_owned())
}

/// Looks addresses up.
pub struct Lines<'a> {
    context: addr2line::Context<Slice<'a>>,
    /// By offset of the unit: whether its inlining is shallow enough to follow.
    depth_checked: FxHashMap<usize, bool>,
}

impl Lines<'_> {
    /// The inline chain at a linked address, innermost first. The last one is the function itself.
    pub fn frames(&mut self, address: u64) -> Result<Vec<Frame>, Reason> {
        let unit = self.context.find_dwarf_and_unit(address).skip_all_loads();
        let Some(unit) = unit else { return Err(Reason::NoLineForAddress) };
        if unit.dwo_name().is_ok_and(|name| name.is_some()) && !has_children(&unit) {
            return Err(Reason::SplitDebugInformation);
        }
        let offset = unit.header.debug_info_offset().map_or(usize::MAX, |offset| offset.0);
        if !*self.depth_checked.entry(offset).or_insert_with(|| is_shallow(&unit)) {
            return Err(Reason::BadDebugInformation);
        }
        let bad = |_| Reason::BadDebugInformation;
        let mut found = self.context.find_frames(address).skip_all_loads().map_err(bad)?;
        let mut frames = Vec::new();
        while let Some(frame) = found.next().map_err(bad)? {
            if frames.len() >= MAX_FRAMES {
                break;
            }
            let raw = frame.function.as_ref().and_then(|function| function.raw_name().ok());
            let (file, line, column) =
                frame.location.map_or((None, None, None), |place| (place.file, place.line, place.column));
            frames.push(Frame {
                function: raw.map(|raw| name::demangled(&raw)),
                file: file.map(name::safe),
                line,
                column,
            });
        }
        if frames.iter().all(|frame| frame.function.is_none() && frame.line.is_none()) {
            return Err(Reason::NoLineForAddress);
        }
        Ok(frames)
    }
}

/// A skeleton unit of split debug information has a head and nothing below.
fn has_children(unit: &gimli::UnitRef<'_, Slice<'_>>) -> bool {
    let mut entries = unit.entries();
    entries.next_dfs().is_ok_and(|entry| entry.is_some_and(|entry| entry.has_children()))
}

/// Whether inlined calls nest no deeper than what addr2line's recursion can follow.
fn is_shallow(unit: &gimli::UnitRef<'_, Slice<'_>>) -> bool {
    let mut open: Vec<isize> = Vec::new();
    let Ok(mut entries) = unit.entries_raw(None) else { return false };
    while !entries.is_empty() {
        let depth = entries.next_depth();
        match entries.read_abbreviation() {
            Ok(Some(abbreviation)) => {
                while open.last().is_some_and(|&outer| outer >= depth) {
                    open.pop();
                }
                if abbreviation.tag() == gimli::DW_TAG_inlined_subroutine {
                    open.push(depth);
                    if open.len() > MAX_INLINE_DEPTH {
                        return false;
                    }
                }
                if entries.skip_attributes(abbreviation.attributes()).is_err() {
                    // addr2line stops here too.
                    return true;
                }
            }
            Ok(None) => {}
            Err(_) => return true,
        }
    }
    true
}
