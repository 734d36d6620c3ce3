//! Which functions a unit has, and what is inlined into one of them.
//!
//! Finding the same as addr2line does, and in the same order: a search that would find one of several finds the same one.

use super::cursor::Cursor;
use super::entry_shapes::{Addresses, Passed, Shape, Shapes};
use super::split::Slice;
use gimli::constants::{self, DW_TAG_inlined_subroutine, DW_TAG_subprogram};
use gimli::{AttributeValue, RawRangeListsOffset, UnitOffset, UnitRef};
use std::cmp::Ordering;

/// Ranges of addresses of one function, or of what is inlined into it: more than an honest file has.
const MOST_RANGES: usize = 1 << 20;

/// Addresses of a function.
#[derive(Clone, Copy, Debug)]
struct Place {
    begin: u64,
    size: u32,
    /// Its entry, from the unit's start.
    entry: u32,
}

/// Where functions are looked for. Compilers put nearly all outside; the deeper, the rarer, and the longer it takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Depth {
    /// Neither in namespaces nor in types or functions.
    Outside,
    /// Also in namespaces.
    Namespaces,
    /// Also in types and functions.
    Everywhere,
}

impl Depth {
    /// The next deeper one.
    pub fn deeper(self) -> Option<Depth> {
        match self {
            Depth::Outside => Some(Depth::Namespaces),
            Depth::Namespaces => Some(Depth::Everywhere),
            Depth::Everywhere => None,
        }
    }
}

/// The functions of a unit that have addresses, in order of address.
#[derive(Debug, Default)]
pub struct UnitFunctions(Box<[Place]>);

/// An inlined call.
#[derive(Clone, Copy, Debug)]
struct InlinedPlace {
    depth: u32,
    entry: u32,
    begin: u64,
    end: u64,
}

/// All that is inlined into a function, in order of depth and address.
#[derive(Debug, Default)]
pub struct Inlined(Vec<InlinedPlace>);

/// A unit's entries, and where they start in the unit.
fn entries_of<'a>(unit: &UnitRef<'_, Slice<'a>>) -> Option<(&'a [u8], usize)> {
    let root = unit.header.root_offset();
    Some((unit.header.range_from(root..).ok()?.slice(), root.0))
}

/// What an entry says about its addresses.
pub fn ranges_of<'a>(
    unit: &UnitRef<'_, Slice<'a>>,
    entry: usize,
    mut found: impl FnMut(u64, u64),
) -> Result<bool, gimli::Error> {
    let mut entries = unit.entries_raw(Some(UnitOffset(entry)))?;
    let Some(abbreviation) = entries.read_abbreviation()? else { return Ok(false) };
    let (mut low, mut high, mut size, mut list) = (None, None, None, None);
    for attribute in abbreviation.attributes() {
        if !matches!(attribute.name(), gimli::DW_AT_low_pc | gimli::DW_AT_high_pc | gimli::DW_AT_ranges) {
            entries.skip_attributes(std::slice::from_ref(attribute))?;
            continue;
        }
        let attribute = entries.read_attribute(*attribute)?;
        match (attribute.name(), attribute.value()) {
            (gimli::DW_AT_low_pc, AttributeValue::Addr(address)) => low = Some(address),
            (gimli::DW_AT_low_pc, AttributeValue::DebugAddrIndex(index)) => low = Some(unit.address(index)?),
            (gimli::DW_AT_high_pc, AttributeValue::Addr(address)) => high = Some(address),
            (gimli::DW_AT_high_pc, AttributeValue::DebugAddrIndex(index)) => {
                high = Some(unit.address(index)?)
            }
            (gimli::DW_AT_high_pc, AttributeValue::Udata(bytes)) => size = Some(bytes),
            (gimli::DW_AT_ranges, value) => list = unit.attr_ranges_offset(value)?,
            _ => {}
        }
    }
    let mut any = false;
    let mut add = |begin: u64, end: u64| {
        if begin < end {
            any = true;
            found(begin, end);
        }
    };
    if let Some(list) = list {
        let mut ranges = unit.ranges(list)?;
        while let Some(range) = ranges.next()? {
            add(range.begin, range.end);
        }
    } else if let Some(begin) = low {
        match (high, size) {
            (Some(end), _) => add(begin, end),
            // What was thrown away may start at the last address of all.
            (None, Some(size)) => add(begin, begin.wrapping_add(size)),
            (None, None) => {}
        }
    }
    Ok(any)
}

/// The ranges of an entry that has been passed.
#[inline]
fn ranges(
    unit: &UnitRef<'_, Slice<'_>>,
    shape: Shape,
    passed: Passed,
    entry: usize,
    mut found: impl FnMut(u64, u64),
) -> Option<()> {
    match shape.addresses {
        Addresses::None => {}
        Addresses::Span => {
            // What was thrown away may start at the last address of all.
            let end = passed.low.wrapping_add(passed.size);
            if passed.low < end {
                found(passed.low, end);
            }
        }
        Addresses::List => {
            let list = unit.ranges_offset_from_raw(RawRangeListsOffset(passed.list));
            let mut ranges = unit.ranges(list).ok()?;
            while let Some(range) = ranges.next().ok()? {
                if range.begin < range.end {
                    found(range.begin, range.end);
                }
            }
        }
        Addresses::Other => drop(ranges_of(unit, entry, found).ok()?),
    }
    Some(())
}

impl UnitFunctions {
    /// Reads a unit, looking for functions where `depth` says. Returns how far it has looked, too: if a
    /// compiler does not say how to skip something, it is read. `None`: damaged or unusual.
    pub fn read(
        unit: &UnitRef<'_, Slice<'_>>,
        shapes: &mut Shapes,
        depth: Depth,
    ) -> Option<(UnitFunctions, Depth)> {
        let (bytes, base) = entries_of(unit)?;
        let mut cursor = Cursor::new(bytes, 0);
        let mut places: Vec<Place> = Vec::new();
        let mut looked = Depth::Everywhere;
        while !cursor.is_at_end() {
            let entry = cursor.at() + base;
            let code = cursor.unsigned()?;
            if code == 0 {
                continue;
            }
            let shape = shapes.of(unit, code)?;
            let passed = shapes.pass(shape, &mut cursor)?;
            if shape.tag == DW_TAG_subprogram && shape.addresses != Addresses::None {
                let entry = u32::try_from(entry).ok()?;
                let mut too_large = false;
                let add = |begin: u64, end: u64| match u32::try_from(end - begin) {
                    Ok(size) if places.len() < MOST_RANGES => places.push(Place { begin, size, entry }),
                    _ => too_large = true,
                };
                ranges(unit, shape, passed, entry as usize, add)?;
                if too_large {
                    return None;
                }
            }
            let open = match depth {
                Depth::Outside => shape.tag == constants::DW_TAG_compile_unit,
                Depth::Namespaces => {
                    matches!(shape.tag, constants::DW_TAG_compile_unit | constants::DW_TAG_namespace)
                }
                Depth::Everywhere => true,
            };
            let sibling = passed.sibling.saturating_sub(base);
            if !open && shape.has_children && sibling > cursor.at() {
                cursor.go_to(sibling);
                looked = depth;
            }
        }
        places.sort_unstable_by_key(|place| place.begin);
        Some((UnitFunctions(places.into_boxed_slice()), looked))
    }

    /// How much memory they take.
    pub fn bytes(&self) -> usize {
        size_of_val(&self.0[..])
    }

    /// The entry of the function that has an address.
    pub fn find(&self, address: u64) -> Option<usize> {
        let found = self.0.binary_search_by(|place| {
            if address < place.begin {
                Ordering::Greater
            } else if address - place.begin >= u64::from(place.size) {
                Ordering::Less
            } else {
                Ordering::Equal
            }
        });
        found.ok().and_then(|at| self.0.get(at)).map(|place| place.entry as usize)
    }
}

impl Inlined {
    /// Reads what is inlined into the function at `entry`. `None`: damaged or out of the ordinary.
    pub fn read(&mut self, unit: &UnitRef<'_, Slice<'_>>, shapes: &mut Shapes, entry: usize) -> Option<()> {
        self.0.clear();
        let (bytes, base) = entries_of(unit)?;
        let mut cursor = Cursor::new(bytes, entry.checked_sub(base)?);
        let shape = {
            let code = cursor.unsigned()?;
            shapes.of(unit, code)?
        };
        shapes.pass(shape, &mut cursor)?;
        if !shape.has_children {
            return Some(());
        }
        // Depths of the inlined calls that are open, counted from the function.
        let mut open: Vec<u32> = Vec::new();
        // Inside a function in this one.
        let mut other: Option<u32> = None;
        let mut depth = 1u32;
        while depth > 0 {
            let entry = cursor.at() + base;
            let code = cursor.unsigned()?;
            if code == 0 {
                depth -= 1;
                continue;
            }
            while open.last().is_some_and(|&outer| outer >= depth) {
                open.pop();
            }
            other = other.filter(|&outer| outer < depth);
            let shape = shapes.of(unit, code)?;
            let passed = shapes.pass(shape, &mut cursor)?;
            if other.is_none() && shape.tag == DW_TAG_inlined_subroutine {
                if shape.addresses != Addresses::None {
                    let (entry, level) = (u32::try_from(entry).ok()?, u32::try_from(open.len()).ok()?);
                    let add = |begin, end| {
                        if self.0.len() <= MOST_RANGES {
                            self.0.push(InlinedPlace { depth: level, entry, begin, end });
                        }
                    };
                    ranges(unit, shape, passed, entry as usize, add)?;
                    if self.0.len() > MOST_RANGES {
                        return None;
                    }
                }
                open.push(depth);
            }
            if shape.has_children {
                if other.is_none() && shape.tag == DW_TAG_subprogram {
                    let sibling = passed.sibling.saturating_sub(base);
                    if sibling > cursor.at() {
                        cursor.go_to(sibling);
                        continue;
                    }
                    other = Some(depth);
                }
                depth = depth.checked_add(1)?;
            }
        }
        self.0.sort_unstable_by_key(|place| (place.depth, place.begin));
        Some(())
    }

    /// The entries of what is inlined at an address, outermost first.
    pub fn find(&self, address: u64, mut found: impl FnMut(usize)) {
        let mut rest = &self.0[..];
        for depth in 0.. {
            let at = rest.binary_search_by(|place| {
                place.depth.cmp(&depth).then_with(|| {
                    if place.begin > address {
                        Ordering::Greater
                    } else if place.end <= address {
                        Ordering::Less
                    } else {
                        Ordering::Equal
                    }
                })
            });
            let Ok(at) = at else { break };
            let Some(place) = rest.get(at) else { break };
            found(place.entry as usize);
            rest = rest.get(at + 1..).unwrap_or_default();
        }
    }
}
