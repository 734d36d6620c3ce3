//! Chains of inlined calls out of small indexes of units: what addr2line answers, in half of its time and a twentieth of its
//! memory, since it reads all functions and rows of a unit and keeps them.
//!
//! A unit's index has its functions' addresses and marks in its line table. What is inlined into a function
//! and the rows around an address are read again when they are asked for, and only those names that are part
//! of an answer. Split debug information and anything damaged or unusual is [`Beyond`] this and left to
//! addr2line.

use super::dwarf::FrameNumbers;
use super::entry_shapes::Shapes;
use super::line_marks::{LineFound, LineMarks, LineProgram};
use super::name;
use super::split::Slice;
use super::string_table::StringTable;
use super::unit_functions::{Depth, Inlined, UnitFunctions};
use super::unit_names::{Beyond, Names, path_of};
use super::units::Units;
use gimli::{Dwarf, Unit, UnitRef};
use rustc_hash::FxHashMap;
use std::borrow::Cow;
use std::sync::Arc;

/// Most bytes of indexes that are kept; then all are made again. They are a twentieth of the debug information.
const MOST_KEPT: usize = 256 << 20;
/// Most frames of one chain that are returned.
pub const MAX_FRAMES: usize = 128;

/// Finds chains.
pub struct Chains<'a> {
    dwarf: Arc<Dwarf<Slice<'a>>>,
    units: Units<'a>,
    common: Option<Units<'a>>,
    /// By the number of the unit; `None`: beyond this.
    indexes: FxHashMap<usize, Option<Index>>,
    /// Bytes of them.
    kept: usize,
    current: Current<'a>,
}

/// What is known of a unit.
struct Index {
    functions: UnitFunctions,
    /// Where they have been looked for.
    depth: Depth,
    lines: Option<LineMarks>,
    /// Numbers of the texts of its files.
    files: Vec<Option<u32>>,
}

/// What the last address was in: the next one often is, too.
#[derive(Default)]
struct Current<'a> {
    unit: Option<usize>,
    shapes: Shapes,
    program: Option<LineProgram<'a>>,
    /// Its entry.
    function: Option<usize>,
    inlined: Inlined,
    /// Entries of a chain.
    hits: Vec<usize>,
}

impl<'a> Chains<'a> {
    /// Over the sections of a program. `None`: they are beyond this.
    pub fn over(dwarf: &Arc<Dwarf<Slice<'a>>>) -> Option<Chains<'a>> {
        let units = Units::with_addresses(dwarf)?;
        let common = match dwarf.sup() {
            Some(common) => Some(Units::of(common)?),
            None => None,
        };
        Some(Chains {
            dwarf: Arc::clone(dwarf),
            units,
            common,
            indexes: FxHashMap::default(),
            kept: 0,
            current: Current::default(),
        })
    }

    /// Adds the chain at a linked address, innermost first; nothing if nothing is known there.
    pub fn find(
        &mut self,
        address: u64,
        texts: &mut StringTable,
        frames: &mut Vec<FrameNumbers>,
    ) -> Result<(), Beyond> {
        let Chains { dwarf, units, common, indexes, kept, current } = self;
        let names = Names { dwarf, units, common: common.as_ref() };
        for number in units.at(address) {
            let unit = &units.get(number).ok_or(Beyond)?.unit;
            if unit.dwo_id.is_some() {
                return Err(Beyond);
            }
            let unit = UnitRef::new(names.dwarf, unit);
            current.enter(number, unit.unit);
            if *kept > MOST_KEPT {
                indexes.clear();
                *kept = 0;
            }
            let index = indexes.entry(number).or_insert_with(|| {
                let index = Index::of(&unit, current);
                *kept = kept.saturating_add(index.as_ref().map_or(0, Index::bytes));
                index
            });
            let index = index.as_mut().ok_or(Beyond)?;
            let mut function = index.functions.find(address);
            while function.is_none()
                && let Some(deeper) = index.depth.deeper()
            {
                let read = UnitFunctions::read(&unit, &mut current.shapes, deeper).ok_or(Beyond)?;
                (index.functions, index.depth) = read;
                function = index.functions.find(address);
            }
            let row = match (&index.lines, &current.program) {
                (Some(marks), Some(program)) => marks.find(program, address).ok_or(Beyond)?,
                _ => None,
            };
            if function.is_some() || row.is_some() {
                return index.chain(&unit, &names, current, function, row, address, texts, frames);
            }
        }
        Ok(())
    }
}

impl<'a> Current<'a> {
    fn enter(&mut self, number: usize, unit: &Unit<Slice<'a>>) {
        if self.unit != Some(number) {
            self.unit = Some(number);
            self.shapes.clear();
            self.program = unit.line_program.as_ref().and_then(|program| LineProgram::of(program.header()));
            self.function = None;
        }
    }

    /// Collects what is inlined into a function at an address, outermost first.
    fn inlined_at(&mut self, unit: &UnitRef<'_, Slice<'_>>, function: usize, address: u64) -> Option<()> {
        if self.function != Some(function) {
            self.function = None;
            self.inlined.read(unit, &mut self.shapes, function)?;
            self.function = Some(function);
        }
        self.hits.clear();
        self.inlined.find(address, |hit| self.hits.push(hit));
        Some(())
    }
}

impl Index {
    fn of(unit: &UnitRef<'_, Slice<'_>>, current: &mut Current<'_>) -> Option<Index> {
        let (functions, depth) = UnitFunctions::read(unit, &mut current.shapes, Depth::Outside)?;
        let lines = match (&unit.line_program, &current.program) {
            (Some(_), program) => Some(LineMarks::of(program.as_ref()?)?),
            (None, _) => None,
        };
        Some(Index { functions, depth, lines, files: Vec::new() })
    }

    fn bytes(&self) -> usize {
        let lines = self.lines.as_ref().map_or(0, LineMarks::bytes);
        size_of::<Index>().saturating_add(self.functions.bytes()).saturating_add(lines)
    }

    #[expect(clippy::too_many_arguments, reason = "what a unit has found about one address")]
    fn chain<'n, 'a>(
        &mut self,
        unit: &UnitRef<'n, Slice<'a>>,
        names: &Names<'n, 'a>,
        current: &mut Current<'a>,
        function: Option<usize>,
        row: Option<LineFound>,
        address: u64,
        texts: &mut StringTable,
        frames: &mut Vec<FrameNumbers>,
    ) -> Result<(), Beyond> {
        let mut place = FrameNumbers::default();
        if let Some(LineFound { file, line, column }) = row {
            place.file = self.file(unit, file, texts)?;
            // Where the compiler names no line, its column means nothing.
            place.line = (line != 0).then_some(line);
            place.column = (line != 0).then_some(column);
        }
        let Some(function) = function else {
            frames.push(place);
            return Ok(());
        };
        current.inlined_at(unit, function, address).ok_or(Beyond)?;
        for &entry in current.hits.iter().rev().chain([&function]).take(MAX_FRAMES) {
            let called = names.called(unit, entry)?;
            frames.push(FrameNumbers { function: called.name.map(|name| readable(name, texts)), ..place });
            place = FrameNumbers {
                function: None,
                file: match called.file {
                    Some(file) => self.file(unit, file, texts)?,
                    None => None,
                },
                line: (called.line != 0).then_some(called.line),
                column: (called.column != 0).then_some(called.column),
            };
        }
        Ok(())
    }

    /// The number of a file's text.
    fn file(
        &mut self,
        unit: &UnitRef<'_, Slice<'_>>,
        number: u64,
        texts: &mut StringTable,
    ) -> Result<Option<u32>, Beyond> {
        let at = usize::try_from(number).map_err(|_| Beyond)?;
        if let Some(Some(known)) = self.files.get(at) {
            return Ok(Some(*known));
        }
        let Some(program) = &unit.line_program else { return Ok(None) };
        let header = program.header();
        let path = match header.file(number) {
            Some(file) => path_of(unit, header, file)?,
            // Up to version 4, the list starts at 1.
            None if number == 0 => String::new(),
            None => return Ok(None),
        };
        let text = texts.number(name::safe(&path));
        if self.files.len() <= at {
            self.files.resize(at.saturating_add(1), None);
        }
        if let Some(slot) = self.files.get_mut(at) {
            *slot = Some(text);
        }
        Ok(Some(text))
    }
}

/// The number of a function's readable name.
fn readable(name: Slice<'_>, texts: &mut StringTable) -> u32 {
    match name.to_string_lossy() {
        Cow::Borrowed(raw) => texts.made_from(raw, name::demangled),
        Cow::Owned(raw) => texts.number(name::demangled(&raw)),
    }
}
