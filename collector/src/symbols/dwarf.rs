//! Source lines and inline chains out of DWARF, for many addresses of one module at once.

use super::contained::contained;
use super::elf_file::{ElfFile, Section};
use super::name;
use super::resolve::{Frame, Reason};
use gimli::{DwarfSections, EndianSlice, LittleEndian};
use object::{CompressedData, CompressionFormat};

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
        let context = contained(|| is_shallow(&dwarf).then(|| addr2line::Context::from_dwarf(dwarf)));
        match context {
            Some(Some(Ok(context))) => Ok(Lines { context }),
            _ => Err(Reason::BadDebugInformation),
        }
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
}

impl Lines<'_> {
    /// The inline chain at a linked address, innermost first. The last one is the function itself.
    pub fn frames(&self, address: u64) -> Result<Vec<Frame>, Reason> {
        contained(|| self.find(address)).unwrap_or(Err(Reason::BadDebugInformation))
    }

    fn find(&self, address: u64) -> Result<Vec<Frame>, Reason> {
        let unit = self.context.find_dwarf_and_unit(address).skip_all_loads();
        let Some(unit) = unit else { return Err(Reason::NoLineForAddress) };
        if unit.dwo_name().is_ok_and(|name| name.is_some()) && !has_children(&unit) {
            return Err(Reason::SplitDebugInformation);
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

/// Whether inlined calls nest no deeper than what addr2line's recursion can follow, in all of the file: units of
/// a hostile file can overlap, so that one cannot tell beforehand which ones a search will enter.
fn is_shallow(dwarf: &gimli::Dwarf<Slice<'_>>) -> bool {
    let mut units = dwarf.units();
    // addr2line gives up at a damaged header too.
    while let Ok(Some(header)) = units.next() {
        if let Ok(unit) = dwarf.unit(header)
            && unit_depth(&unit).is_none()
        {
            return false;
        }
    }
    true
}

/// The deepest nesting of inlined calls up to the first damage, or `None` if that is too deep.
fn unit_depth(unit: &gimli::Unit<Slice<'_>>) -> Option<usize> {
    let mut open: Vec<isize> = Vec::new();
    let mut deepest = 0;
    let Ok(mut entries) = unit.entries_raw(None) else { return Some(0) };
    while !entries.is_empty() {
        let depth = entries.next_depth();
        let abbreviation = match entries.read_abbreviation() {
            Ok(Some(abbreviation)) => abbreviation,
            Ok(None) => continue,
            Err(_) => break,
        };
        while open.last().is_some_and(|&outer| outer >= depth) {
            open.pop();
        }
        if abbreviation.tag() == gimli::DW_TAG_inlined_subroutine {
            open.push(depth);
            deepest = deepest.max(open.len());
            if deepest > MAX_INLINE_DEPTH {
                return None;
            }
        }
        if entries.skip_attributes(abbreviation.attributes()).is_err() {
            break;
        }
    }
    Some(deepest)
}
