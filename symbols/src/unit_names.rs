//! What entries are called: functions, inlined calls, and the files of a unit's line table.

use super::split::Slice;
use super::units::{OneUnit, Units};
use gimli::{AttributeValue, Dwarf, FileEntry, LineProgramHeader, UnitOffset, UnitRef};

/// How many references a name may be followed through.
const MOST_STEPS: usize = 16;

/// It is for addr2line to answer: damaged, or out of the ordinary.
#[derive(Debug)]
pub struct Beyond;

impl From<gimli::Error> for Beyond {
    fn from(_: gimli::Error) -> Beyond {
        Beyond
    }
}

/// Where names may be.
#[derive(Clone, Copy)]
pub struct Names<'n, 'a> {
    /// The program's sections.
    pub dwarf: &'n Dwarf<Slice<'a>>,
    /// Its units.
    pub units: &'n Units<'a>,
    /// Units of the file that several debug files share.
    pub common: Option<&'n Units<'a>>,
}

/// A function, or an inlined call of one.
#[derive(Clone, Copy, Debug, Default)]
pub struct Called<'a> {
    /// As the linker knows it, else as the source does.
    pub name: Option<Slice<'a>>,
    /// Where it is called, if it is inlined: number of the file, line and column, 0 if unknown.
    pub file: Option<u64>,
    /// See `file`.
    pub line: u32,
    /// See `file`.
    pub column: u32,
}

impl<'n, 'a> Names<'n, 'a> {
    /// Reads the entry of a function or of an inlined call.
    pub fn called(&self, unit: &UnitRef<'n, Slice<'a>>, entry: usize) -> Result<Called<'a>, Beyond> {
        let mut called = Called::default();
        let mut entries = unit.entries_raw(Some(UnitOffset(entry)))?;
        let abbreviation = entries.read_abbreviation()?.ok_or(Beyond)?;
        for attribute in abbreviation.attributes() {
            if !says_something(attribute.name()) {
                entries.skip_attributes(std::slice::from_ref(attribute))?;
                continue;
            }
            let attribute = entries.read_attribute(*attribute)?;
            match attribute.name() {
                gimli::DW_AT_linkage_name | gimli::DW_AT_MIPS_linkage_name => {
                    called.name = unit.attr_string(attribute.value()).ok().or(called.name);
                }
                gimli::DW_AT_name if called.name.is_none() => {
                    called.name = unit.attr_string(attribute.value()).ok();
                }
                gimli::DW_AT_abstract_origin | gimli::DW_AT_specification if called.name.is_none() => {
                    called.name = self.elsewhere(*unit, attribute.value())?;
                }
                gimli::DW_AT_call_file => {
                    // Before version 5, 0 means no file; from then on it is the first one.
                    if let AttributeValue::FileIndex(file) = attribute.value()
                        && (file > 0 || unit.header.version() >= 5)
                    {
                        called.file = Some(file);
                    }
                }
                // A number that does not fit is cut off as addr2line does it.
                gimli::DW_AT_call_line => called.line = attribute.udata_value().unwrap_or(0) as u32,
                gimli::DW_AT_call_column => called.column = attribute.udata_value().unwrap_or(0) as u32,
                _ => {}
            }
        }
        Ok(called)
    }

    /// The name of the entry that another one refers to.
    fn elsewhere(
        &self,
        mut unit: UnitRef<'n, Slice<'a>>,
        mut value: AttributeValue<Slice<'a>>,
    ) -> Result<Option<Slice<'a>>, Beyond> {
        let mut in_common = false;
        for _ in 0..MOST_STEPS {
            let (one, dwarf, offset) = match value {
                AttributeValue::UnitRef(offset) => (None, unit.dwarf, Ok(offset)),
                AttributeValue::DebugInfoRef(offset) => {
                    let units = if in_common { self.common.ok_or(Beyond)? } else { self.units };
                    (Some(units.holding(offset).ok_or(Beyond)?), unit.dwarf, Err(offset))
                }
                AttributeValue::DebugInfoRefSup(offset) => {
                    let Some(common) = self.dwarf.sup().filter(|_| !in_common) else { return Ok(None) };
                    in_common = true;
                    let units = self.common.ok_or(Beyond)?;
                    (Some(units.holding(offset).ok_or(Beyond)?), common, Err(offset))
                }
                _ => return Ok(None),
            };
            if let Some(OneUnit { unit: there, .. }) = one {
                unit = UnitRef::new(dwarf, there);
            }
            let offset = offset.or_else(|offset| offset.to_unit_offset(&unit.header).ok_or(Beyond))?;
            let mut entries = unit.entries_raw(Some(offset))?;
            let abbreviation = entries.read_abbreviation()?.ok_or(Beyond)?;
            let (mut name, mut next) = (None, None);
            for attribute in abbreviation.attributes() {
                if !says_something(attribute.name()) {
                    entries.skip_attributes(std::slice::from_ref(attribute))?;
                    continue;
                }
                let attribute = entries.read_attribute(*attribute)?;
                match attribute.name() {
                    gimli::DW_AT_linkage_name | gimli::DW_AT_MIPS_linkage_name => {
                        if let Ok(name) = unit.attr_string(attribute.value()) {
                            return Ok(Some(name));
                        }
                    }
                    gimli::DW_AT_name => name = unit.attr_string(attribute.value()).ok().or(name),
                    gimli::DW_AT_abstract_origin | gimli::DW_AT_specification => {
                        next = Some(attribute.value());
                    }
                    _ => {}
                }
            }
            match (name, next) {
                (Some(_), _) | (None, None) => return Ok(name),
                (None, Some(next)) => value = next,
            }
        }
        Ok(None)
    }
}

fn says_something(attribute: gimli::DwAt) -> bool {
    matches!(
        attribute,
        gimli::DW_AT_linkage_name
            | gimli::DW_AT_MIPS_linkage_name
            | gimli::DW_AT_name
            | gimli::DW_AT_abstract_origin
            | gimli::DW_AT_specification
            | gimli::DW_AT_call_file
            | gimli::DW_AT_call_line
            | gimli::DW_AT_call_column
    )
}

/// The path of a file in a unit's line table: below its folder, which is below the one where the compiler ran.
pub fn path_of<'a>(
    unit: &UnitRef<'_, Slice<'a>>,
    header: &LineProgramHeader<Slice<'a>>,
    file: &FileEntry<Slice<'a>>,
) -> Result<String, Beyond> {
    let mut path = unit.comp_dir.map(|folder| folder.to_string_lossy().into_owned()).unwrap_or_default();
    if file.directory_index() != 0
        && let Some(folder) = file.directory(header)
    {
        add(&mut path, &unit.attr_string(folder)?.to_string_lossy());
    }
    add(&mut path, &unit.attr_string(file.path_name())?.to_string_lossy());
    Ok(path)
}

fn add(path: &mut String, part: &str) {
    let begins =
        |text: &str, mark: char, drive: &str| text.starts_with(mark) || text.get(1..3) == Some(drive);
    if begins(part, '/', ":/") || begins(part, '\\', ":\\") {
        path.clear();
    } else {
        let mark = if begins(path, '\\', ":\\") { '\\' } else { '/' };
        if !path.is_empty() && !path.ends_with(mark) {
            path.push(mark);
        }
    }
    path.push_str(part);
}
