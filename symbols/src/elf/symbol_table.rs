//! Reads the function symbols of a binary from the best table that the binary has.

use super::elf_file::{ElfFile, text_at};
use super::functions::{Binding, SymbolSource};
use super::go_table::GoTable;
use crate::error::SymbolError;
use crate::names::MAX_RAW_BYTES;
use object::elf::{STT_FUNC, STT_GNU_IFUNC, Sym64};
use object::read::elf::Sym as _;
use object::{LittleEndian as LE, elf};

/// Largest symbol table and largest table of names that are read, in bytes.
const MAX_TABLE: u64 = 512 << 20;
/// Largest number of function symbols that are accepted.
const MAX_FUNCTIONS: usize = 2_000_000;

/// A function symbol as read from a symbol table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Symbol {
    /// Address as linked.
    pub address: u64,
    /// Size in bytes; 0 if not known.
    pub size: u64,
    /// The symbol's binding.
    pub binding: Binding,
    /// Whether the symbol is the resolver of an IFUNC.
    pub is_ifunc: bool,
    /// Position of the symbol's name in [`Table::names`].
    pub name_at: u32,
}

/// Function symbols of a binary, with their names.
#[derive(Debug)]
pub struct Table {
    /// The symbols, in the order of the file.
    pub symbols: Vec<Symbol>,
    /// NUL-terminated names.
    pub names: Vec<u8>,
    /// The table from which the symbols come.
    pub source: SymbolSource,
}

/// Whether the file has its full symbol table.
pub fn has_full_table(elf: &ElfFile) -> bool {
    index_of(elf, elf::SHT_SYMTAB.0).is_some()
}

fn index_of(elf: &ElfFile, kind: u32) -> Option<usize> {
    elf.sections.iter().position(|section| section.kind == kind && section.size > 0)
}

/// Reads the symbols from the binary's own table, else from the table of its debug file. If both are missing, reads all
/// other sources: dynamic symbols, the small table in `.gnu_debugdata`, Go's table.
pub fn read(
    elf: &ElfFile,
    debug: Option<&ElfFile>,
    mini: Option<&ElfFile>,
    go: Option<&GoTable>,
) -> Result<Table, SymbolError> {
    let mut table = Table { symbols: Vec::new(), names: Vec::new(), source: SymbolSource::None };
    if let Some(index) = index_of(elf, elf::SHT_SYMTAB.0) {
        table.add(elf, index)?;
        table.source = SymbolSource::SymbolTable;
        return Ok(table);
    }
    if let Some((debug, index)) = debug.and_then(|debug| Some((debug, index_of(debug, elf::SHT_SYMTAB.0)?))) {
        table.add(debug, index)?;
        table.source = SymbolSource::DebugFile(debug.path().to_owned());
        return Ok(table);
    }
    if let Some(index) = index_of(elf, elf::SHT_DYNSYM.0) {
        table.add(elf, index)?;
        table.source = SymbolSource::DynamicSymbols;
    }
    if let Some((mini, index)) = mini.and_then(|mini| Some((mini, index_of(mini, elf::SHT_SYMTAB.0)?))) {
        table.add(mini, index)?;
        table.source = SymbolSource::PackedTable;
    }
    if let Some(go) = go {
        table.add_go(go);
        table.source = SymbolSource::GoTable;
    }
    Ok(table)
}

impl Table {
    fn add(&mut self, from: &ElfFile, index: usize) -> Result<(), SymbolError> {
        let Some(section) = from.sections.get(index) else { return Ok(()) };
        let bytes = from.section_bytes(section, "the symbol table", MAX_TABLE)?;
        let base = u32::try_from(self.names.len()).unwrap_or(u32::MAX);
        if let Some(strings) = from.sections.get(section.link as usize) {
            let names = from.section_bytes(strings, "the symbol names", MAX_TABLE)?;
            match self.names.is_empty() {
                true => self.names = names,
                false => self.names.extend_from_slice(&names),
            }
        }
        // A damaged table may end inside a name. The NUL keeps that name from running on into the names of the next
        // table.
        self.names.push(0);
        let (symbols, _) =
            object::pod::slice_from_bytes::<Sym64<LE>>(&bytes, bytes.len() / size_of::<Sym64<LE>>())
                .map_err(|()| SymbolError::not_elf(from.path(), "its symbol table cannot be read"))?;
        for symbol in symbols {
            let kind = symbol.st_type();
            if (kind != STT_FUNC && kind != STT_GNU_IFUNC) || symbol.st_shndx(LE) == elf::SHN_UNDEF {
                continue;
            }
            self.push(
                from,
                Symbol {
                    address: symbol.st_value(LE),
                    size: symbol.st_size(LE),
                    binding: Binding::of(symbol.st_bind()),
                    is_ifunc: kind == STT_GNU_IFUNC,
                    name_at: symbol.st_name(LE).saturating_add(base),
                },
            )?;
        }
        Ok(())
    }

    fn add_go(&mut self, go: &GoTable) {
        for function in go.functions() {
            if self.names.len() as u64 >= MAX_TABLE || self.symbols.len() >= MAX_FUNCTIONS {
                break;
            }
            let name_at = u32::try_from(self.names.len()).unwrap_or(u32::MAX);
            let name = go.name(function.name_at);
            self.names.extend_from_slice(text_at(name, 0, MAX_RAW_BYTES));
            self.names.push(0);
            self.symbols.push(Symbol {
                address: function.address,
                size: function.end.saturating_sub(function.address),
                binding: Binding::Global,
                is_ifunc: false,
                name_at,
            });
        }
    }

    fn push(&mut self, from: &ElfFile, symbol: Symbol) -> Result<(), SymbolError> {
        if self.symbols.len() >= MAX_FUNCTIONS {
            let (path, what) = (from.path().to_owned(), "the table of function symbols");
            return Err(SymbolError::TooLarge { path, what, limit: MAX_FUNCTIONS as u64 * 24 });
        }
        self.symbols.push(symbol);
        Ok(())
    }
}
