//! Finds the names of variables at addresses of a binary's data, in its symbol table.

use super::dwarf::DebugInformation;
use super::members::Members;
use crate::elf::{Binding, ElfFile, ModuleFunctions, text_at};
use crate::error::SymbolError;
use crate::names::{MAX_RAW_BYTES, name};
use object::elf::{STT_COMMON, STT_OBJECT, Sym64};
use object::read::elf::Sym as _;
use object::{LittleEndian as LE, elf};

/// Largest symbol table and largest table of names that are read, in bytes.
const MAX_TABLE: u64 = 512 << 20;
/// Largest number of variables that are kept.
const MAX_VARIABLES: usize = 2_000_000;
/// Largest number of symbols before an address that are compared. Variables do not nest, but those of a hostile table
/// may.
const NEIGHBOURS: usize = 16;

/// Variables, by address.
#[derive(Debug, Default)]
pub struct Variables {
    all: Vec<Variable>,
    names: Vec<u8>,
}

#[derive(Clone, Copy, Debug)]
struct Variable {
    address: u64,
    size: u64,
    binding: Binding,
    name_at: u32,
}

impl Variables {
    /// The variables of a binary, from its own symbol table, else from its separate debug file, else from its dynamic
    /// symbols.
    pub fn read(elf: &ElfFile, debug: Option<&ElfFile>) -> Result<Variables, SymbolError> {
        let of_kind = |elf: &ElfFile, kind: u32| {
            elf.sections.iter().position(|section| section.kind == kind && section.size > 0)
        };
        let own = of_kind(elf, elf::SHT_SYMTAB.0).map(|index| (elf, index));
        let found = own
            .or_else(|| debug.and_then(|debug| Some((debug, of_kind(debug, elf::SHT_SYMTAB.0)?))))
            .or_else(|| of_kind(elf, elf::SHT_DYNSYM.0).map(|index| (elf, index)));
        let Some((from, index)) = found else { return Ok(Variables::default()) };
        let Some(table) = from.sections.get(index) else { return Ok(Variables::default()) };
        let bytes = from.section_bytes(table, "the symbol table", MAX_TABLE)?;
        let names = match from.sections.get(table.link as usize) {
            Some(strings) => from.section_bytes(strings, "the symbol names", MAX_TABLE)?,
            None => Vec::new(),
        };
        let (symbols, _) =
            object::pod::slice_from_bytes::<Sym64<LE>>(&bytes, bytes.len() / size_of::<Sym64<LE>>())
                .map_err(|()| SymbolError::not_elf(from.path(), "its symbol table cannot be read"))?;
        let is_variable = |symbol: &&Sym64<LE>| {
            let kind = symbol.st_type();
            (kind == STT_OBJECT || kind == STT_COMMON)
                && symbol.st_shndx(LE) != elf::SHN_UNDEF
                && symbol.st_value(LE) != 0
        };
        let mut all: Vec<Variable> = symbols
            .iter()
            .filter(is_variable)
            .take(MAX_VARIABLES)
            .map(|symbol| Variable {
                address: symbol.st_value(LE),
                size: symbol.st_size(LE),
                binding: Binding::of(symbol.st_bind()),
                name_at: symbol.st_name(LE),
            })
            .collect();
        all.sort_unstable_by_key(|variable| {
            (variable.address, variable.size, variable.binding, variable.name_at)
        });
        Ok(Variables { all, names })
    }

    /// The name of a linked address: `queue_lock`, `table[2].lock` for a member of a larger variable (even at its
    /// start), or `table+0x40`. `members` gets the variable's address and the distance in bytes, and returns the member
    /// there. `None` if no variable contains the address.
    pub fn at(&self, address: u64, members: impl FnOnce(u64, u64) -> Option<String>) -> Option<String> {
        let end = self.all.partition_point(|variable| variable.address <= address);
        let near = self.all.get(end.saturating_sub(NEIGHBOURS)..end)?;
        let holds = |variable: &&Variable| {
            let distance = address.saturating_sub(variable.address);
            distance < variable.size || (distance == 0 && variable.size == 0)
        };
        // The variable that begins nearest to the address. Of its names, exported ones come first, then shorter ones.
        let best = near.iter().filter(holds).min_by_key(|variable| {
            let name = self.raw(variable);
            (std::cmp::Reverse(variable.address), name.is_empty(), variable.binding, name.len(), name)
        })?;
        let name = name::demangled(&String::from_utf8_lossy(self.raw(best)));
        if name.is_empty() {
            return None;
        }
        let distance = address.saturating_sub(best.address);
        Some(match (members(best.address, distance), distance) {
            (Some(member), _) => format!("{name}{member}"),
            (None, 0) => name,
            (None, distance) => format!("{name}+{distance:#x}"),
        })
    }

    fn raw(&self, variable: &Variable) -> &[u8] {
        text_at(&self.names, variable.name_at, MAX_RAW_BYTES)
    }
}

/// Variables and their members. Members are read at the first question about one.
pub(crate) struct Named<'a> {
    module: &'a ModuleFunctions,
    variables: Variables,
    /// Members of types; the outer `None` means that they have not been read yet.
    members: Option<Option<(DebugInformation<'a>, Members)>>,
}

impl<'a> Named<'a> {
    pub(crate) fn read(module: &'a ModuleFunctions) -> Result<Named<'a>, SymbolError> {
        let variables = Variables::read(module.elf(), module.debug())?;
        Ok(Named { module, variables, members: None })
    }

    /// See [`Variables::at`].
    pub(crate) fn at(&mut self, address: u64) -> Option<String> {
        let Named { module, variables, members } = self;
        variables.at(address, |variable, distance| {
            let read = || {
                let debug = DebugInformation::of(module).ok()?;
                let members = debug.with(|dwarf| Members::read(&dwarf))?;
                Some((debug, members))
            };
            let (debug, members) = members.get_or_insert_with(read).as_ref()?;
            debug.with(|dwarf| members.at(&dwarf, variable, distance))?
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn variables(all: &[(u64, u64, Binding, &str)]) -> Variables {
        let mut variables = Variables::default();
        for &(address, size, binding, name) in all {
            let name_at = variables.names.len() as u32;
            variables.names.extend(name.as_bytes());
            variables.names.push(0);
            variables.all.push(Variable { address, size, binding, name_at });
        }
        variables
    }

    #[test]
    fn an_address_is_named_by_the_nearest_variable_that_reaches_it() {
        let variables = variables(&[
            (0x100, 0x40, Binding::Local, "table"),
            (0x140, 0x28, Binding::Local, "__alias"),
            (0x140, 0x28, Binding::Global, "queue_lock"),
            (0x180, 0, Binding::Global, "end_mark"),
            (0x200, u64::MAX, Binding::Global, "hostile"),
            (0x300, 8, Binding::Global, ""),
            (0x400, 8, Binding::Global, "_ZN3app6bucketE"),
        ]);
        let at = |address| variables.at(address, |_, _| None);
        assert_eq!(at(0xff), None);
        assert_eq!(at(0x100).as_deref(), Some("table"));
        assert_eq!(at(0x13f).as_deref(), Some("table+0x3f"));
        assert_eq!(at(0x140).as_deref(), Some("queue_lock"));
        assert_eq!(at(0x168), None);
        assert_eq!(at(0x180).as_deref(), Some("end_mark"));
        assert_eq!(at(0x181), None);
        assert_eq!(at(u64::MAX).as_deref(), Some("hostile+0xfffffffffffffdff"));
        assert_eq!(at(0x300), None, "a variable without a name");
        assert_eq!(at(0x404).as_deref(), Some("app::bucket+0x4"));
        let member = |base, distance| (base == 0x400 && distance == 4).then(|| ".lock".to_owned());
        assert_eq!(variables.at(0x404, member).as_deref(), Some("app::bucket.lock"));
        assert_eq!(variables.at(0x13f, member).as_deref(), Some("table+0x3f"));
    }

    /// The test reads its own symbol table.
    #[test]
    fn a_variable_of_this_test_is_found_with_its_size() {
        #[used]
        static LONGPOLE_TEST_VARIABLE: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(7);
        let elf = ElfFile::open(std::path::Path::new("/proc/self/exe")).expect("this test");
        let variables = Variables::read(&elf, None).expect("symbols");

        let found = variables.all.iter().find(|variable| {
            variables
                .at(variable.address, |_, _| None)
                .is_some_and(|name| name.contains("LONGPOLE_TEST_VARIABLE"))
        });
        assert!(found.is_some_and(|variable| variable.size == 8), "{found:?}");
    }
}
