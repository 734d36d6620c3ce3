//! The functions in a binary's symbol table.

use super::build_id::BuildId;
use super::debug_file::{self, Search};
use super::debug_paths::HostFiles;
use super::elf_file::{ElfFile, Section, text_at};
use super::files::Files;
use super::go_table::GoTable;
use super::mini_debug;
use super::symbol_table;
use crate::error::SymbolError;
use crate::names::{MAX_RAW_BYTES, name};
use object::elf;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// Largest number of sections with linker stubs that are read. An honest file has three.
const MAX_STUB_SECTIONS: usize = 16;

/// All functions in a binary's symbol table, by address. The file stays open, so that instructions and debug
/// information are later read from the same file.
#[derive(Debug)]
pub struct ModuleFunctions {
    elf: ElfFile,
    debug: Option<ElfFile>,
    /// The small symbol table packed into some stripped binaries (`.gnu_debugdata`).
    mini: Option<ElfFile>,
    go: Option<GoTable>,
    /// One sentence for each debug file that was refused.
    refused: Vec<String>,
    files: OtherFiles,
    module: String,
    functions: Vec<Function>,
    names: Vec<u8>,
    source: SymbolSource,
    is_go: bool,
    outside: usize,
    /// Sections of linker stubs.
    stubs: Vec<Section>,
}

/// Opens other files of a module: debug files and split debug information.
struct OtherFiles(Mutex<Box<dyn Files>>);

impl fmt::Debug for OtherFiles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OtherFiles")
    }
}

/// The table from which the function names come.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SymbolSource {
    /// The binary's own symbol table.
    SymbolTable,
    /// The dynamic symbols of a stripped binary, which name only the exported functions.
    DynamicSymbols,
    /// The symbol table of the binary's separate debug file.
    DebugFile(PathBuf),
    /// The dynamic symbols of a stripped binary, and the small symbol table in its section `.gnu_debugdata`.
    PackedTable,
    /// Go's own table of functions (`.gopclntab`).
    GoTable,
    /// There is no table, so functions have no names.
    None,
}

/// A function symbol of a binary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Function {
    /// Address as linked. If the function begins with `endbr64`, this is the address of `endbr64`.
    pub address: u64,
    /// Offset of the first instruction in the file, in bytes.
    pub file_offset: u64,
    /// Size in bytes; 0 if the symbol has no size.
    pub size: u64,
    /// The symbol's binding.
    pub binding: Binding,
    /// The kind of function.
    pub kind: FunctionKind,
    name_at: u32,
}

/// The binding of a symbol: which other definitions and modules it may meet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Binding {
    /// Other modules can use the function. GNU's unique symbols count as global, too.
    Global,
    /// Like global, but another module's definition may replace this one.
    Weak,
    /// Only its own object file can use the function, as with C's `static`.
    Local,
}

impl Binding {
    pub(crate) fn of(number: elf::SymbolBind) -> Binding {
        match number {
            elf::STB_LOCAL => Binding::Local,
            elf::STB_WEAK => Binding::Weak,
            _ => Binding::Global,
        }
    }
}

/// The kind of a function symbol. If several kinds apply, the first one in this order wins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FunctionKind {
    /// Another name of a function at the same address. The number is the index of that function in the list.
    Alias(usize),
    /// A resolver of an IFUNC: the dynamic linker calls it to choose one of several implementations of a function.
    IfuncResolver,
    /// A linker's stub.
    Plt,
    /// The function belongs to the start or end of the program: `_start`, `.init`, `.fini`.
    Startup,
    /// The rarely executed part of another function (`.cold`), which that function enters by jumps.
    Cold,
    /// A part of another function that the compiler made a function of its own (`.part`).
    Part,
    /// An ordinary function, none of the other kinds.
    Ordinary,
}

/// The functions of an ELF file, from its symbol table, else from a separate debug file with the same build-id, else
/// from its dynamic symbols. A file without symbols gives an empty list and no error.
pub fn functions_of(path: &Path) -> Result<ModuleFunctions, SymbolError> {
    ModuleFunctions::read(ElfFile::open(path)?)
}

/// Like [`functions_of`], but searches debug files in `folders` first.
pub fn functions_with(path: &Path, folders: &[PathBuf]) -> Result<ModuleFunctions, SymbolError> {
    let files = HostFiles::of(path).with_folders(folders);
    ModuleFunctions::load(ElfFile::open(path)?, Box::new(files))
}

impl ModuleFunctions {
    /// Like [`functions_of`], for a file that is already open.
    pub fn read(elf: ElfFile) -> Result<ModuleFunctions, SymbolError> {
        let files = HostFiles::of(elf.path());
        ModuleFunctions::load(elf, Box::new(files))
    }

    /// Like [`ModuleFunctions::read`], but opens other files through `files`.
    pub fn load(elf: ElfFile, mut files: Box<dyn Files>) -> Result<ModuleFunctions, SymbolError> {
        let module = elf.path().file_name().map(|name| name.to_string_lossy()).unwrap_or_default();
        let module = name::safe_within(&module, 255);
        let is_go = elf.section(b".go.buildinfo").is_some() || elf.section(b".gopclntab").is_some();
        let Search { found: debug, refused } = debug_file::find(&elf, files.as_mut());
        let has_table = |elf: &ElfFile| symbol_table::has_full_table(elf);
        let named = has_table(&elf) || debug.as_ref().is_some_and(has_table);
        let mini = if named { None } else { mini_debug::read(&elf) };
        let go = if is_go { GoTable::read(&elf) } else { None };
        // Every jump is checked against the list of stub sections, and a hostile file may have 65,000 of them. So the
        // list is cut.
        let stubs = elf.sections.iter().filter(|section| section.name.starts_with(b".plt"));
        let stubs = stubs.take(MAX_STUB_SECTIONS).cloned().collect();
        let mut functions = ModuleFunctions {
            elf,
            debug,
            mini,
            go,
            refused,
            files: OtherFiles(Mutex::new(files)),
            module,
            functions: Vec::new(),
            names: Vec::new(),
            source: SymbolSource::None,
            is_go,
            outside: 0,
            stubs,
        };
        functions.read_symbols()?;
        Ok(functions)
    }

    /// The binary's file name, for messages. The name is `exe` for `/proc/PID/exe`: see [`ModuleFunctions::rename`].
    pub fn module(&self) -> &str {
        &self.module
    }

    /// Sets the module's name in messages.
    pub fn rename(&mut self, module: &str) {
        self.module = name::safe_within(module, 255);
    }

    /// All function symbols, by address. The first one at each address is not an alias.
    pub fn functions(&self) -> &[Function] {
        &self.functions
    }

    /// The table from which the names come.
    pub fn source(&self) -> &SymbolSource {
        &self.source
    }

    /// The binary's build-id.
    pub fn build_id(&self) -> Option<&BuildId> {
        self.elf.build_id.as_ref()
    }

    /// Whether Go built the module: Go moves stacks, so a stack pointer does not identify a frame.
    pub fn is_go(&self) -> bool {
        self.is_go
    }

    /// Whether the module contains Rust's standard library, recognized by a function that every such program has.
    pub fn is_rust(&self) -> bool {
        self.functions.iter().any(|function| self.raw_name_bytes(function) == b"rust_eh_personality")
    }

    /// Number of function symbols outside the file's code, which are ignored.
    pub fn outside(&self) -> usize {
        self.outside
    }

    /// The binary.
    pub fn elf(&self) -> &ElfFile {
        &self.elf
    }

    /// The separate debug file, if there is one that belongs to the binary.
    pub fn debug(&self) -> Option<&ElfFile> {
        self.debug.as_ref()
    }

    /// One sentence for each debug file that was found but does not belong to the binary.
    pub fn refused(&self) -> &[String] {
        &self.refused
    }

    /// Go's own table of functions and lines.
    pub(crate) fn go(&self) -> Option<&GoTable> {
        self.go.as_ref()
    }

    /// Calls `open` with the interface that opens the module's other files.
    pub(crate) fn with_files<T>(&self, open: impl FnOnce(&mut dyn Files) -> T) -> T {
        let mut files = self.files.0.lock().unwrap_or_else(PoisonError::into_inner);
        open(files.as_mut())
    }

    /// The symbol's name as in the file, cut to [`MAX_RAW_BYTES`].
    pub fn raw_name(&self, function: &Function) -> Cow<'_, str> {
        String::from_utf8_lossy(self.raw_name_bytes(function))
    }

    /// The readable name, safe to print. If the symbol has no name, the result is `module+0xoffset`.
    pub fn name(&self, function: &Function) -> String {
        let raw = self.raw_name(function);
        if raw.is_empty() { unnamed(&self.module, function.file_offset) } else { name::demangled(&raw) }
    }

    /// Index of the first symbol at exactly this address.
    pub fn starting_at(&self, address: u64) -> Option<usize> {
        let at = self.functions.partition_point(|function| function.address < address);
        self.functions.get(at).is_some_and(|function| function.address == address).then_some(at)
    }

    /// The function that contains the address.
    pub fn containing(&self, address: u64) -> Option<&Function> {
        let end = self.functions.partition_point(|function| function.address <= address);
        // Functions rarely overlap, so checking a few symbols before the address is enough. The limit also bounds the
        // search in a hostile file.
        let is_alias = |function: &Function| matches!(function.kind, FunctionKind::Alias(_));
        let mut found: Option<&Function> = None;
        for function in self.functions[..end].iter().rev().take(16) {
            match found {
                // Of the functions that contain the address, the nearest start wins. Of several symbols at one address,
                // the one that is not an alias wins.
                Some(nearer) if function.address < nearer.address || !is_alias(nearer) => break,
                Some(_) if is_alias(function) => {}
                _ if address - function.address < function.size => found = Some(function),
                _ => {}
            }
        }
        found
    }

    /// The position of the function's name in the table of names. Functions with the same position have the same name.
    /// `None` if the function has no name.
    pub(crate) fn name_place(&self, function: &Function) -> Option<u32> {
        self.names.get(function.name_at as usize).filter(|&&first| first != 0).map(|_| function.name_at)
    }

    /// The symbol to which an address belongs. If no symbol contains the address, the last symbol before it counts,
    /// provided that this symbol has no size and starts in the same section. Such symbols come from assembly code.
    pub fn covering(&self, address: u64) -> Option<&Function> {
        self.containing(address).or_else(|| {
            let end = self.functions.partition_point(|function| function.address <= address);
            let start = self.functions.get(end.checked_sub(1)?)?.address;
            let first = self.functions.get(self.starting_at(start)?)?;
            let sections = self.elf.code_sections();
            let section = sections.iter().find(|section| section.contains(address))?;
            (first.size == 0 && section.contains(first.address)).then_some(first)
        })
    }

    /// Whether the address lies in a section of linker stubs.
    pub fn is_plt(&self, address: u64) -> bool {
        self.stubs.iter().any(|section| section.contains(address))
    }

    pub(crate) fn raw_name_bytes(&self, function: &Function) -> &[u8] {
        text_at(&self.names, function.name_at, MAX_RAW_BYTES)
    }

    fn read_symbols(&mut self) -> Result<(), SymbolError> {
        let mut found =
            symbol_table::read(&self.elf, self.debug.as_ref(), self.mini.as_ref(), self.go.as_ref())?;
        let code = self.elf.code_sections();
        let mut functions = Vec::with_capacity(found.symbols.len());
        for symbol in &found.symbols {
            let Some(file_offset) = self.code_offset(symbol.address, &code) else {
                self.outside += 1;
                continue;
            };
            functions.push(Function {
                address: symbol.address,
                file_offset,
                size: symbol.size,
                binding: symbol.binding,
                kind: if symbol.is_ifunc { FunctionKind::IfuncResolver } else { FunctionKind::Ordinary },
                name_at: symbol.name_at,
            });
        }
        self.names = std::mem::take(&mut found.names);
        self.source = found.source;
        self.functions = functions;
        self.sort_and_classify();
        Ok(())
    }

    /// The file offset of an address that may contain instructions. `None` unless the address is in an executable
    /// segment and, if the file has sections, in a section with code.
    fn code_offset(&self, address: u64, code: &[&Section]) -> Option<u64> {
        let offset = self.elf.code_offset_of(address)?;
        (self.elf.sections.is_empty() || code.iter().any(|section| section.contains(address)))
            .then_some(offset)
    }

    fn sort_and_classify(&mut self) {
        let mut functions = std::mem::take(&mut self.functions);
        // Names are not compared here: a hostile table may contain millions of names for one address, and comparing
        // them would be slow.
        functions.sort_unstable_by_key(|function| {
            (function.address, function.size == 0, function.binding, function.name_at)
        });
        let code = self.elf.code_sections();
        let mut first = 0;
        while let Some(&Function { address, .. }) = functions.get(first) {
            let end =
                first + functions[first..].iter().take_while(|function| function.address == address).count();
            let group = &mut functions[first..end];
            let best = (0..group.len().min(64)).min_by_key(|&index| self.rank(&group[index])).unwrap_or(0);
            group.swap(0, best);
            if group.iter().any(|function| function.kind == FunctionKind::IfuncResolver) {
                group[0].kind = FunctionKind::IfuncResolver;
            } else {
                group[0].kind = self.ordinary_kind(&group[0], &code);
            }
            for alias in &mut group[1..] {
                alias.kind = FunctionKind::Alias(first);
            }
            first = end;
        }
        self.functions = functions;
    }

    /// Ranks a function's name among the names at one address. The best names have a size, are exported, have few
    /// leading underscores, and are short.
    fn rank(&self, function: &Function) -> (bool, Binding, usize, usize, &[u8]) {
        let raw = self.raw_name_bytes(function);
        let underscores = raw.iter().take_while(|&&byte| byte == b'_').count();
        (function.size == 0, function.binding, underscores, raw.len(), raw)
    }

    fn ordinary_kind(&self, function: &Function, code: &[&Section]) -> FunctionKind {
        let section = code.iter().find(|section| section.contains(function.address));
        let section = section.map_or(&b""[..], |section| &section.name);
        let raw = self.raw_name_bytes(function);
        if section.starts_with(b".plt") || section == b".iplt" || raw.ends_with(b"@plt") {
            FunctionKind::Plt
        } else if function.address == self.elf.entry || section == b".init" || section == b".fini" {
            FunctionKind::Startup
        } else if cold_parent(raw).is_some() {
            FunctionKind::Cold
        } else if part_parent(raw).is_some() {
            FunctionKind::Part
        } else {
            FunctionKind::Ordinary
        }
    }
}

/// The name of a place without a symbol.
pub fn unnamed(module: &str, file_offset: u64) -> String {
    format!("{module}+{file_offset:#x}")
}

/// The name of the function to which a `.cold` part belongs: `f` for `f.cold` and `f.cold.3`.
pub fn cold_parent(raw: &[u8]) -> Option<&[u8]> {
    suffix_parent(raw, b".cold")
}

/// The name of the function to which a `.part` belongs: `f` for `f.part.0`, even if the compiler has appended more.
fn part_parent(raw: &[u8]) -> Option<&[u8]> {
    let at = raw.windows(6).position(|window| window == b".part.")?;
    raw.get(at + 6).is_some_and(u8::is_ascii_digit).then(|| &raw[..at])
}

fn suffix_parent<'a>(raw: &'a [u8], suffix: &[u8]) -> Option<&'a [u8]> {
    let digits = raw.iter().rev().take_while(|byte| byte.is_ascii_digit()).count();
    let stem = &raw[..raw.len() - digits];
    let stem = if digits > 0 { stem.strip_suffix(b".")? } else { stem };
    stem.strip_suffix(suffix).filter(|parent| !parent.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_cold_and_partial_functions_lead_to_their_parent() {
        assert_eq!(cold_parent(b"f.cold"), Some(&b"f"[..]));
        assert_eq!(cold_parent(b"f.constprop.0.cold.12"), Some(&b"f.constprop.0"[..]));
        assert_eq!(cold_parent(b"f.colder"), None);
        assert_eq!(cold_parent(b".cold"), None);
        assert_eq!(cold_parent(b"f.cold2"), None);
        assert_eq!(part_parent(b"f.part.0"), Some(&b"f"[..]));
        assert_eq!(part_parent(b"f.part.0.isra.0"), Some(&b"f"[..]));
        assert_eq!(part_parent(b"f.party"), None);
    }
}
