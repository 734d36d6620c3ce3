//! Finds source lines and chains of inlined functions in DWARF, for many addresses of one module.

use super::split::{Parts, Slice, Split};
use super::string_table::StringTable;
use crate::answer::Reason;
use crate::catch_panic::catch_panic;
use crate::elf::{
    Bytes, ElfFile, FileRequest, ModuleFunctions, debug_sections, has_debug_information, search,
    supplement_link,
};
use crate::names::name;
use addr2line::{LookupContinuation, LookupResult};
use gimli::{DwarfSections, EndianSlice, LittleEndian};
use std::cell::Cell;

/// Deepest inlining that is accepted. addr2line follows inlining by recursion, so a hostile file could overflow the
/// stack.
const MAX_INLINE_DEPTH: usize = 400;
/// Largest number of frames that are returned for one address.
const MAX_FRAMES: usize = 128;

/// A module's debug sections, unpacked.
pub struct DebugInformation<'a> {
    module: &'a ModuleFunctions,
    sections: DwarfSections<Bytes>,
    /// DWARF that several debug files share. The tool dwz makes such files.
    supplement: Option<DwarfSections<Bytes>>,
    supplement_missing: bool,
    parts: Parts,
    /// Whether to skip the check for too deep inlining. An expendable process skips the check.
    trusted: bool,
}

/// A function at a source line. Texts are given by their numbers in [`StringTable`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FrameNumbers {
    /// Readable name.
    pub function: Option<u32>,
    /// Source file.
    pub file: Option<u32>,
    /// Line, from 1.
    pub line: Option<u32>,
    /// Column, from 1; 0 means the start of the line.
    pub column: Option<u32>,
}

impl<'a> DebugInformation<'a> {
    /// The debug information of a module, from its own sections or else from its separate debug file.
    pub fn of(module: &'a ModuleFunctions) -> Result<DebugInformation<'a>, Reason> {
        let files = [Some(module.elf()), module.debug()];
        let elf = files.into_iter().flatten().find(|elf| has_debug_information(elf));
        let elf = elf.ok_or(Reason::NoDebugInformation)?;
        let sections = debug_sections(elf)?;
        let link = supplement_link(elf);
        let supplement = link.as_ref().and_then(|(path, id)| {
            let request = FileRequest::Supplement { path: path.clone(), build_id: id.clone() };
            module.with_files(|files| {
                search(files, &request, |candidate| {
                    let file = module.elf().open_companion(candidate.file, &candidate.path).ok()?;
                    (id.is_some() && file.build_id == *id).then_some(file)
                })
            })
        });
        let supplement: Option<ElfFile> = supplement;
        let supplement = supplement.map(|file| debug_sections(&file)).transpose()?;
        Ok(DebugInformation {
            module,
            sections,
            supplement_missing: link.is_some() && supplement.is_none(),
            supplement,
            parts: Parts::of(module),
            trusted: module.elf().may_map(),
        })
    }

    /// Whether the supplement is missing, the file that several debug files share. Without it, some names are unknown.
    pub fn supplement_missing(&self) -> bool {
        self.supplement_missing
    }

    /// Calls `work` with the sections; `None` if it panics.
    pub(super) fn with<'s, T>(&'s self, work: impl FnOnce(gimli::Dwarf<Slice<'s>>) -> T) -> Option<T> {
        let borrow = |bytes| EndianSlice::new(bytes, LittleEndian);
        catch_panic(|| {
            let mut dwarf = self.sections.borrow(|bytes: &Bytes| borrow(bytes));
            if let Some(supplement) = &self.supplement {
                dwarf.set_sup(supplement.borrow(|bytes: &Bytes| borrow(bytes)));
            }
            work(dwarf)
        })
    }

    /// Prepares the search for lines in these sections.
    pub fn lines(&self) -> Result<Lines<'_>, Reason> {
        let context = self.with(|dwarf| {
            let shallow = self.trusted || is_shallow(&dwarf);
            shallow.then(|| addr2line::Context::from_dwarf(dwarf).ok()).flatten()
        });
        let context = context.flatten().ok_or(Reason::BadDebugInformation)?;
        Ok(Lines { context, split: Split::new(self.module, &self.parts), parts_missing: Cell::new(false) })
    }
}

/// Finds the chain of inlined functions at an address.
pub struct Lines<'a> {
    context: addr2line::Context<Slice<'a>>,
    split: Split<'a>,
    parts_missing: Cell<bool>,
}

impl<'a> Lines<'a> {
    /// The chain of inlined functions at a linked address, innermost first. The last frame is the function itself.
    pub fn frames(&self, address: u64, texts: &mut StringTable) -> Result<Vec<FrameNumbers>, Reason> {
        catch_panic(|| self.find(address, texts)).unwrap_or(Err(Reason::BadDebugInformation))
    }

    fn find(&self, address: u64, texts: &mut StringTable) -> Result<Vec<FrameNumbers>, Reason> {
        let bad = |_| Reason::BadDebugInformation;
        let mut found = self.loaded(self.context.find_frames(address)).map_err(bad)?;
        let mut frames: Vec<FrameNumbers> = Vec::new();
        while let Some(frame) = found.next().map_err(bad)? {
            if frames.len() >= MAX_FRAMES {
                break;
            }
            let function = match frame.function.as_ref().map(addr2line::FunctionName::raw_name) {
                Some(Ok(std::borrow::Cow::Borrowed(raw))) => Some(texts.made_from(raw, name::demangled)),
                Some(Ok(std::borrow::Cow::Owned(raw))) => Some(texts.number(name::demangled(&raw))),
                _ => None,
            };
            let place = frame.location;
            frames.push(FrameNumbers {
                function,
                file: place
                    .as_ref()
                    .and_then(|place| place.file)
                    .map(|file| texts.made_from(file, name::safe)),
                line: place.as_ref().and_then(|place| place.line),
                column: place.as_ref().and_then(|place| place.column),
            });
        }
        if says_nothing(&frames) {
            return Err(Reason::NoLineForAddress);
        }
        if self.parts_missing.get() && frames.iter().all(|frame| frame.function.is_none()) {
            // A line without a function may be a line of a function that was inlined at this address.
            let unit = self.loaded(self.context.find_dwarf_and_unit(address));
            if unit
                .is_some_and(|unit| unit.dwo_name().is_ok_and(|name| name.is_some()) && !has_children(&unit))
            {
                return Err(Reason::SplitDebugInformation);
            }
        }
        Ok(frames)
    }

    /// Returns the result of a search. Loads the parts of split debug information that the search needs.
    fn loaded<L: LookupContinuation<Buf = Slice<'a>>>(&self, mut result: LookupResult<L>) -> L::Output {
        loop {
            match result {
                LookupResult::Output(output) => return output,
                LookupResult::Load { load, continuation } => {
                    let part = self.split.load(&load);
                    if part.is_none() {
                        self.parts_missing.set(true);
                    }
                    result = continuation.resume(part);
                }
            }
        }
    }
}

fn says_nothing(frames: &[FrameNumbers]) -> bool {
    frames.iter().all(|frame| frame.function.is_none() && frame.line.is_none())
}

/// Whether a unit has entries. The skeleton unit of split debug information has only a head.
fn has_children(unit: &gimli::UnitRef<'_, Slice<'_>>) -> bool {
    let mut entries = unit.entries();
    entries.next_dfs().is_ok_and(|entry| entry.is_some_and(|entry| entry.has_children()))
}

/// Whether inlined calls in the file are never nested deeper than addr2line's recursion can follow. All units are
/// checked, because units of a hostile file can overlap, and then it is unknown which units a search will enter.
fn is_shallow(dwarf: &gimli::Dwarf<Slice<'_>>) -> bool {
    let mut units = dwarf.units();
    // The loop ends at a damaged header, because addr2line stops there, too.
    while let Ok(Some(header)) = units.next() {
        if let Ok(unit) = dwarf.unit(header)
            && unit_depth(&unit).is_none()
        {
            return false;
        }
    }
    true
}

/// The deepest nesting of inlined calls up to the first damage. `None` if the nesting is too deep.
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
