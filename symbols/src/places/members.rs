//! Finds in DWARF which member of a variable lies at a distance from its start: `.queue.mutex`. Complicated cases
//! (several names for one place, types of other files, bit fields) have no answer, and longpole then shows the
//! distance. Members of types of the standard libraries (`inner.futex` of `Mutex`) are private, so longpole follows
//! them but does not name them.

use super::split::Slice;
use gimli::{
    AttributeValue, DebugInfoOffset, Dwarf, EvaluationResult, Section as _, UnitOffset, constants as dw,
};
use rustc_hash::{FxHashMap, FxHashSet};

type Entry<'a> = gimli::DebuggingInformationEntry<Slice<'a>>;
type Unit<'a> = gimli::Unit<Slice<'a>>;

/// Size of the largest `.debug_info` that is searched for variables, in bytes. The search takes some hundred
/// milliseconds.
const MAX_BYTES: usize = 256 << 20;
/// Largest number of variables that are kept.
const MAX_VARIABLES: usize = 1_000_000;
/// Largest depth of nested types, and largest number of names of one type, that are followed.
const MAX_STEPS: usize = 32;
/// Largest number of members of one type that are read.
const MAX_MEMBERS: usize = 4_096;
/// Largest number of library types that are kept.
const MAX_LIBRARY_TYPES: usize = 4_000_000;
/// Namespaces of libraries whose types have private members.
const LIBRARIES: [&[u8]; 8] =
    [b"std", b"core", b"alloc", b"lock_api", b"parking_lot", b"parking_lot_core", b"spin", b"__gnu_cxx"];
/// Longest answer, in bytes.
const MAX_TEXT: usize = 120;

/// Where DWARF describes the types of a binary's variables.
#[derive(Debug, Default)]
pub(super) struct Members {
    /// For each variable, by its linked address: its unit, and the position of its type in the unit.
    types: FxHashMap<u64, (usize, UnitOffset)>,
    /// Types in namespaces of libraries: the unit, and the type's position in the unit.
    of_libraries: FxHashSet<(usize, UnitOffset)>,
}

impl Members {
    /// Reads all variables outside of functions.
    pub(super) fn read(dwarf: &Dwarf<Slice<'_>>) -> Members {
        let mut members = Members::default();
        if dwarf.debug_info.reader().slice().len() > MAX_BYTES {
            return members;
        }
        let mut units = dwarf.units();
        // A unit that cannot be decoded counts as one without variables.
        while let Ok(Some(header)) = units.next() {
            let at = header.debug_info_offset();
            if let (Some(DebugInfoOffset(at)), Ok(unit)) = (at, dwarf.unit(header)) {
                let _ = members.unit(dwarf, &unit, at);
            }
        }
        members
    }

    fn unit(&mut self, dwarf: &Dwarf<Slice<'_>>, unit: &Unit<'_>, at: usize) -> gimli::Result<()> {
        let mut entries = unit.entries();
        let mut entry = match entries.next_dfs()? {
            Some(_) => entries.next_dfs()?,
            None => return Ok(()),
        };
        // The depth of the library's namespace that contains the current entry; `None` outside of libraries.
        let mut library: Option<isize> = None;
        // Only entries directly in the unit and in its namespaces are read, not entries inside other entries.
        while let Some(found) = entry {
            let tag = found.tag();
            library = library.filter(|&depth| found.depth() > depth);
            let is_type = tag == dw::DW_TAG_structure_type || tag == dw::DW_TAG_class_type;
            if is_type && library.is_some() && self.of_libraries.len() < MAX_LIBRARY_TYPES {
                self.of_libraries.insert((at, found.offset()));
            }
            if tag == dw::DW_TAG_variable && self.types.len() < MAX_VARIABLES {
                let place = address(dwarf, unit, found);
                if let (Some(place), Some(kind)) = (place, type_of_variable(unit, found)) {
                    self.types.entry(place).or_insert((at, kind));
                }
            }
            let inside = tag == dw::DW_TAG_namespace || tag == dw::DW_TAG_module;
            if inside && found.has_children() {
                if library.is_none() && is_library(dwarf, unit, found) {
                    library = Some(found.depth());
                }
                entry = entries.next_dfs()?;
                continue;
            }
            let depth = found.depth();
            entry = match entries.next_sibling()? {
                Some(_) => entries.current(),
                // At the end of a namespace, the loop continues with the entry after it.
                None if depth > 1 => entries.next_dfs()?,
                None => None,
            };
        }
        Ok(())
    }

    /// The member at this distance in bytes from the start of the variable at this linked address. Empty for the
    /// variable itself.
    pub(super) fn at(&self, dwarf: &Dwarf<Slice<'_>>, variable: u64, distance: u64) -> Option<String> {
        let &(at, kind) = self.types.get(&variable)?;
        let header = dwarf.debug_info.header_from_offset(DebugInfoOffset(at)).ok()?;
        let unit = dwarf.unit(header).ok()?;
        let text = Walk { dwarf, unit: &unit, at, of_libraries: &self.of_libraries }.path(kind, distance)?;
        (text.len() <= MAX_TEXT).then_some(text)
    }
}

/// Whether a namespace belongs to a library.
fn is_library(dwarf: &Dwarf<Slice<'_>>, unit: &Unit<'_>, entry: &Entry<'_>) -> bool {
    let name = entry.attr_value(dw::DW_AT_name).and_then(|name| dwarf.attr_string(unit, name).ok());
    name.is_some_and(|name| LIBRARIES.contains(&name.slice()))
}

/// The address in a variable's DWARF entry, if it is a plain address.
pub(super) fn address(dwarf: &Dwarf<Slice<'_>>, unit: &Unit<'_>, entry: &Entry<'_>) -> Option<u64> {
    let AttributeValue::Exprloc(expression) = entry.attr_value(dw::DW_AT_location)? else { return None };
    let mut evaluation = expression.evaluation(unit.encoding());
    evaluation.set_max_iterations(8);
    match evaluation.evaluate().ok()? {
        EvaluationResult::RequiresRelocatedAddress(address) => Some(address),
        EvaluationResult::RequiresIndexedAddress { index, relocate: true } => dwarf.address(unit, index).ok(),
        _ => None,
    }
}

/// The type of a variable. If the definition has no type, the declaration to which it refers has one.
fn type_of_variable(unit: &Unit<'_>, entry: &Entry<'_>) -> Option<UnitOffset> {
    if let Some(AttributeValue::UnitRef(kind)) = entry.attr_value(dw::DW_AT_type) {
        return Some(kind);
    }
    let AttributeValue::UnitRef(declared) = entry.attr_value(dw::DW_AT_specification)? else { return None };
    match unit.entry(declared).ok()?.attr_value(dw::DW_AT_type)? {
        AttributeValue::UnitRef(kind) => Some(kind),
        _ => None,
    }
}

struct Walk<'a, 'd> {
    dwarf: &'a Dwarf<Slice<'d>>,
    unit: &'a Unit<'d>,
    /// Offset of the unit in `.debug_info`.
    at: usize,
    of_libraries: &'a FxHashSet<(usize, UnitOffset)>,
}

impl<'d> Walk<'_, 'd> {
    fn path(&self, kind: UnitOffset, distance: u64) -> Option<String> {
        let (mut kind, mut left, mut text) = (kind, distance, String::new());
        for _ in 0..MAX_STEPS {
            let entry = self.unit.entry(kind).ok()?;
            match entry.tag() {
                dw::DW_TAG_typedef
                | dw::DW_TAG_const_type
                | dw::DW_TAG_volatile_type
                | dw::DW_TAG_atomic_type => kind = self.type_of(&entry)?,
                dw::DW_TAG_array_type => {
                    let element = self.type_of(&entry)?;
                    // DWARF describes an array of arrays as one array with several ranges. Only arrays with one range
                    // are followed.
                    let size = self.size(element).filter(|&size| size > 0 && self.ranges(kind) == Some(1))?;
                    text.push_str(&format!("[{}]", left / size));
                    (kind, left) = (element, left % size);
                }
                dw::DW_TAG_structure_type | dw::DW_TAG_class_type => {
                    let is_own = !self.of_libraries.contains(&(self.at, kind));
                    match self.member(kind, left).filter(|member| !(is_own && member.is_reserved())) {
                        Some(Member { name, kind: inner, start }) => {
                            if let Some(name) = name.filter(|_| is_own) {
                                text.push('.');
                                text.push_str(&name);
                            }
                            (kind, left) = (inner, left - start);
                        }
                        // The members are private. So the answer ends here, and is right only if the wanted place is
                        // the start of this one.
                        None => return (left == 0).then_some(text),
                    }
                }
                // For a union it is unknown which member is in use. All other types here have no members.
                _ => return (left == 0).then_some(text),
            }
            if text.len() > MAX_TEXT {
                return None;
            }
        }
        None
    }

    fn type_of(&self, entry: &Entry<'d>) -> Option<UnitOffset> {
        match entry.attr_value(dw::DW_AT_type)? {
            AttributeValue::UnitRef(kind) => Some(kind),
            _ => None,
        }
    }

    /// The member that contains this distance. If several do, because some members have no size, the one that begins
    /// last.
    fn member(&self, kind: UnitOffset, distance: u64) -> Option<Member> {
        let mut entries = self.unit.entries_at_offset(kind).ok()?;
        entries.next_dfs().ok()??;
        entries.next_dfs().ok()??;
        let mut best: Option<Member> = None;
        for _ in 0..MAX_MEMBERS {
            let Some(entry) = entries.current() else { break };
            let is_member = entry.tag() == dw::DW_TAG_member || entry.tag() == dw::DW_TAG_inheritance;
            let member = if is_member { self.reaching(entry, distance) } else { None };
            if let Some(member) = member
                && best.as_ref().is_none_or(|best| best.start <= member.start)
            {
                best = Some(member);
            }
            if entries.next_sibling().ok()?.is_none() {
                break;
            }
        }
        best
    }

    fn reaching(&self, entry: &Entry<'d>, distance: u64) -> Option<Member> {
        if entry.attr_value(dw::DW_AT_data_bit_offset).is_some() {
            return None;
        }
        // Static members are not in the object, so they have no location.
        let start = entry.attr_value(dw::DW_AT_data_member_location)?.udata_value()?;
        let kind = self.type_of(entry)?;
        let within = distance.checked_sub(start)?;
        if self.size(kind).is_some_and(|size| within >= size) {
            return None;
        }
        let name = match entry.attr_value(dw::DW_AT_name) {
            Some(name) => {
                let name = self.dwarf.attr_string(self.unit, name).ok()?;
                Some(String::from_utf8_lossy(name.slice()).into_owned())
            }
            None => None,
        };
        Some(Member { name, kind, start })
    }

    /// Size of a type, bytes.
    fn size(&self, kind: UnitOffset) -> Option<u64> {
        let mut kind = kind;
        for _ in 0..MAX_STEPS {
            let entry = self.unit.entry(kind).ok()?;
            if let Some(size) = entry.attr_value(dw::DW_AT_byte_size) {
                return size.udata_value();
            }
            if entry.tag() == dw::DW_TAG_array_type {
                // An array without a size in bytes may be a last member whose length is open.
                return None;
            }
            kind = self.type_of(&entry)?;
        }
        None
    }

    fn ranges(&self, array: UnitOffset) -> Option<usize> {
        let mut entries = self.unit.entries_at_offset(array).ok()?;
        entries.next_dfs().ok()??;
        entries.next_dfs().ok()??;
        let mut count = 0;
        for _ in 0..MAX_STEPS {
            let Some(entry) = entries.current() else { break };
            count += usize::from(entry.tag() == dw::DW_TAG_subrange_type);
            if entries.next_sibling().ok()?.is_none() {
                break;
            }
        }
        Some(count)
    }
}

struct Member {
    /// The member's name; `None` if it has none. Then its own members count as members of the outer type.
    name: Option<String>,
    kind: UnitOffset,
    start: u64,
}

impl Member {
    /// Whether the name is reserved for the implementation of C or C++, as `__data` and `_M_mutex`.
    fn is_reserved(&self) -> bool {
        let mut letters = self.name.iter().flat_map(|name| name.chars());
        letters.next() == Some('_')
            && letters.next().is_some_and(|next| next == '_' || next.is_ascii_uppercase())
    }
}
