//! The units of a program's debug information, and which of them may know an address.

use super::line_marks::{LineMarks, LineProgram};
use super::split::Slice;
use super::unit_functions::ranges_of;
use gimli::{DebugArangesOffset, DebugInfoOffset, Dwarf, Unit, UnitRef, UnitType};

/// Most ranges of addresses of all units together.
const MOST_RANGES: usize = 1 << 23;

/// A unit that may have code, or names for code of other units.
pub struct OneUnit<'a> {
    /// Where it starts in its section.
    offset: usize,
    /// What its head says.
    pub unit: Unit<Slice<'a>>,
}

/// All units of a section.
pub struct Units<'a> {
    all: Vec<OneUnit<'a>>,
    /// In order of their ends.
    ranges: Vec<UnitRange>,
}

#[derive(Clone, Copy)]
struct UnitRange {
    begin: u64,
    end: u64,
    /// The lowest beginning of this one and all after it.
    lowest: u64,
    unit: u32,
}

impl<'a> Units<'a> {
    /// Reads the heads of all units, and what addresses they have. `None`: damaged or out of the ordinary.
    pub fn with_addresses(dwarf: &Dwarf<Slice<'a>>) -> Option<Units<'a>> {
        let mut units = Units::of(dwarf)?;
        // The separate list of addresses, by unit.
        let mut listed: Vec<(usize, DebugArangesOffset)> = Vec::new();
        let mut headers = dwarf.debug_aranges.headers();
        while let Some(header) = headers.next().ok()? {
            listed.push((header.debug_info_offset().0, header.offset()));
        }
        listed.sort_by_key(|(unit, _)| *unit);
        let mut ranges = Vec::new();
        for (number, one) in units.all.iter().enumerate() {
            // What several units have in common has no code.
            if matches!(one.unit.header.type_(), UnitType::Partial) {
                continue;
            }
            let unit = u32::try_from(number).ok()?;
            one.ranges(dwarf, &listed, |begin, end| {
                if ranges.len() <= MOST_RANGES {
                    ranges.push(UnitRange { begin, end, lowest: 0, unit });
                }
            })?;
            if ranges.len() > MOST_RANGES {
                return None;
            }
        }
        ranges.sort_unstable_by_key(|range| (range.end, range.unit));
        let mut lowest = u64::MAX;
        for range in ranges.iter_mut().rev() {
            lowest = lowest.min(range.begin);
            range.lowest = lowest;
        }
        units.ranges = ranges;
        Some(units)
    }

    /// Reads the heads of all units. `None`: damaged.
    pub fn of(dwarf: &Dwarf<Slice<'a>>) -> Option<Units<'a>> {
        let mut all = Vec::new();
        let mut headers = dwarf.units();
        while let Some(header) = headers.next().ok()? {
            let Some(offset) = header.debug_info_offset() else { continue };
            if matches!(header.type_(), UnitType::Type { .. } | UnitType::SplitType { .. }) {
                continue;
            }
            // One that cannot be read does not take the others with it.
            if let Ok(unit) = dwarf.unit(header) {
                all.push(OneUnit { offset: offset.0, unit });
            }
        }
        Some(Units { all, ranges: Vec::new() })
    }

    /// The numbers of the units that may know an address: several where the same code came from several units.
    pub fn at(&self, address: u64) -> impl Iterator<Item = usize> + '_ {
        let from = self.ranges.partition_point(|range| range.end <= address);
        let ranges = self.ranges.get(from..).unwrap_or_default();
        let possible = ranges.iter().take_while(move |range| range.lowest <= address);
        possible.filter(move |range| range.begin <= address).map(|range| range.unit as usize)
    }

    /// A unit by its number.
    pub fn get(&self, number: usize) -> Option<&OneUnit<'a>> {
        self.all.get(number)
    }

    /// The unit that has the entry at an offset of the section.
    pub fn holding(&self, offset: DebugInfoOffset) -> Option<&OneUnit<'a>> {
        let behind = self.all.partition_point(|one| one.offset < offset.0);
        behind.checked_sub(1).and_then(|at| self.all.get(at))
    }
}

impl<'a> OneUnit<'a> {
    /// The unit's own list of ranges, else its ranges in the separate list, else the one range that it spans,
    /// else those of its lines: addr2line's order.
    fn ranges(
        &self,
        dwarf: &Dwarf<Slice<'a>>,
        listed: &[(usize, DebugArangesOffset)],
        mut add: impl FnMut(u64, u64),
    ) -> Option<()> {
        let unit = UnitRef::new(dwarf, &self.unit);
        let mut entries = unit.entries_raw(None).ok()?;
        let root = entries.read_abbreviation().ok()??;
        let has_list = root.attributes().iter().any(|one| one.name() == gimli::DW_AT_ranges);
        let mut any = false;
        if !has_list {
            let from = listed.partition_point(|(unit, _)| *unit < self.offset);
            let lists = listed.get(from..).unwrap_or_default();
            for (_, list) in lists.iter().take_while(|(unit, _)| *unit == self.offset) {
                let mut entries = dwarf.debug_aranges.header(*list).ok()?.entries();
                while let Some(entry) = entries.next().transpose() {
                    // A range that does not fit into the address space is none.
                    if let Ok(entry) = entry
                        && entry.length() != 0
                    {
                        any = true;
                        add(entry.range().begin, entry.range().end);
                    }
                }
            }
        }
        if any || ranges_of(&unit, self.unit.header.root_offset().0, &mut add).ok()? {
            return Some(());
        }
        if let Some(program) = &self.unit.line_program {
            let marks = LineMarks::of(&LineProgram::of(program.header())?)?;
            marks.ranges().for_each(|(begin, end)| add(begin, end));
        }
        Some(())
    }
}
