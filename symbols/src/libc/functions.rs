//! Finds the synchronization functions in a C library's file, and the places of probes at the start and end of each
//! call.
//!
//! A C library exports each operation under several names and versions. All of them count as the same operation. A
//! statically linked program has the functions under the same names in its own symbol table.

use super::names::{self, Known};
use crate::code::{Bounds, UnknownExits, UnwindTables, Walker, exit_points};
use crate::elf::{ElfFile, text_at};
use crate::error::SymbolError;
use iced_x86::{Mnemonic, OpKind, Register};
use object::elf::{self, STT_FUNC, STT_TLS, Sym64};
use object::read::elf::Sym as _;
use object::{LittleEndian as LE, pod};
use probe_abi::{LibcFunction, MutexLayout, SyncOperation};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::Path;

/// Largest symbol table and largest table of names that are read, in bytes.
const MAX_TABLE: u64 = 256 << 20;
/// Largest length of a name that is looked up, in bytes.
const MAX_NAME: usize = 64;

/// The synchronization functions in a file. Addresses are as linked.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LibcFunctions {
    /// The functions, by address.
    pub functions: Vec<LibcCall>,
    /// Functions that cannot be probed, and why.
    pub unsure: Vec<(&'static str, UnknownExits)>,
    /// How to find a thread's `errno`.
    pub errno: Option<ErrnoPlace>,
    /// The layout of mutexes in memory, which differs between glibc and musl.
    pub layout: MutexLayout,
    /// Linked addresses of the first byte of the library's code, and of the byte after the last one.
    pub text: (u64, u64),
    /// The first instruction of the file's code.
    pub start: Option<CodePlace>,
    /// Whether the file is a statically linked program, which names no loader.
    pub is_static: bool,
}

/// The place of an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CodePlace {
    /// Address, as linked.
    pub address: u64,
    /// Offset in the file, bytes.
    pub offset: u64,
}

/// A function of a C library that gets probes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LibcCall {
    /// The function's name, without leading underscores.
    pub name: &'static str,
    /// The operation that the function does.
    pub operation: SyncOperation,
    /// How the function uses its arguments and its result, encoded as in a probe's cookie (the number that a hit passes
    /// to the kernel program).
    pub function: LibcFunction,
    /// The function's first instruction.
    pub entry: CodePlace,
    /// Whether the function's first instruction cannot have an entry probe of its own. Then the probes on the
    /// function's `ret`s record complete calls.
    pub entry_is_closed: bool,
    /// The function's `ret`s. Empty if the function does not return.
    pub leaves: Vec<CodePlace>,
    /// In `once` functions, the calls of the routine that the caller passed.
    pub ran: Vec<CodePlace>,
}

/// How to find the distance of `errno` from the thread pointer, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ErrnoPlace {
    /// The distance is this number.
    At(i64),
    /// The loader writes the distance to this linked address.
    In(u64),
}

/// Reads the file at `path`, a C library or a statically linked program. Empty if the file has none of the functions.
///
/// # Errors
/// If the file cannot be read or is no ELF file.
pub fn libc_functions(path: &Path) -> Result<LibcFunctions, SymbolError> {
    functions_in(&ElfFile::open(path)?)
}

/// Like [`libc_functions`], for an open file.
///
/// # Errors
///
/// The symbol tables cannot be read.
pub fn functions_in(elf: &ElfFile) -> Result<LibcFunctions, SymbolError> {
    let mut found = LibcFunctions::default();
    if !elf.is_x86_64 {
        return Ok(found);
    }
    let code = || elf.segments.iter().filter(|segment| segment.executable);
    let from = code().map(|segment| segment.address).min().unwrap_or(0);
    let end = |segment: &crate::elf::Segment| segment.address.saturating_add(segment.file_size);
    found.text = (from, code().map(end).max().unwrap_or(0));
    found.start = place(elf, elf.entry).ok();
    found.is_static = elf.interpreter.is_none();
    let symbols = Symbols::read(elf)?;
    if symbols.known.is_empty() {
        return Ok(found);
    }
    found.layout = symbols.layout();
    found.errno = match (symbols.errno_location, symbols.errno_variable) {
        (Some(address), _) => errno_place(elf, address),
        (None, Some(at)) if found.is_static => {
            let bytes = elf.thread_local_bytes.and_then(|bytes| i64::try_from(bytes).ok());
            bytes.zip(i64::try_from(at).ok()).map(|(bytes, at)| ErrnoPlace::At(at - bytes))
        }
        _ => None,
    };
    let unwind = UnwindTables::read(elf);
    let bounds = Bounds { unwind: unwind.as_ref(), symbols: &symbols.ends };
    for (&address, &known) in &symbols.known {
        // Names of two different operations have this address, so it is unknown which operation a call does.
        let Some(known) = known else { continue };
        match call(elf, &bounds, address, known) {
            Ok(call) => found.functions.push(call),
            Err(reason) => found.unsure.push((known.name, reason)),
        }
    }
    Ok(found)
}

fn place(elf: &ElfFile, address: u64) -> Result<CodePlace, UnknownExits> {
    let offset = elf.code_offset_of(address).ok_or(UnknownExits::Unreadable)?;
    Ok(CodePlace { address, offset })
}

fn call(
    elf: &ElfFile,
    bounds: &Bounds<'_>,
    address: u64,
    known: &'static Known,
) -> Result<LibcCall, UnknownExits> {
    let places = |addresses: &[u64]| -> Result<Vec<CodePlace>, UnknownExits> {
        addresses.iter().map(|&address| place(elf, address)).collect()
    };
    let entry = place(elf, address)?;
    let (first, _) = Walker::new(elf, address).step()?;
    let mut call = LibcCall {
        name: known.name,
        operation: known.operation,
        function: known.function(),
        entry,
        entry_is_closed: !first.can_hold_probe,
        leaves: Vec::new(),
        ran: Vec::new(),
    };
    if known.operation == SyncOperation::ThreadExit {
        return if call.entry_is_closed { Err(UnknownExits::NotProbeable) } else { Ok(call) };
    }
    let ways = exit_points(elf, bounds, address)?;
    // A function that only returns has its entry probe and its exit probe on the same instruction.
    call.entry_is_closed |= ways.returns.contains(&address);
    if call.entry_is_closed && !ways.keeps_first_argument {
        return Err(UnknownExits::NotProbeable);
    }
    call.leaves = places(&ways.returns)?;
    if known.operation == SyncOperation::Once {
        call.ran = places(&ways.indirect_calls)?;
    }
    Ok(call)
}

/// The facts that the symbol tables give.
#[derive(Default)]
struct Symbols {
    /// The function at each address; `None` if names of different operations have the address.
    known: BTreeMap<u64, Option<&'static Known>>,
    /// The end of each function, by its start. Addresses are as linked.
    ends: BTreeMap<u64, u64>,
    errno_location: Option<u64>,
    /// Offset of `errno` in the file's block of thread-local variables, in bytes.
    errno_variable: Option<u64>,
    is_glibc: bool,
    is_musl: bool,
}

impl Symbols {
    fn read(elf: &ElfFile) -> Result<Symbols, SymbolError> {
        let mut symbols = Symbols::default();
        for kind in [elf::SHT_DYNSYM.0, elf::SHT_SYMTAB.0] {
            let Some(table) = elf.sections.iter().find(|section| section.kind == kind && section.size > 0)
            else {
                continue;
            };
            let bytes = elf.section_bytes(table, "the symbol table", MAX_TABLE)?;
            let names = match elf.sections.get(table.link as usize) {
                Some(strings) => elf.section_bytes(strings, "the symbol names", MAX_TABLE)?,
                None => Vec::new(),
            };
            let count = bytes.len() / size_of::<Sym64<LE>>();
            let (entries, _) = pod::slice_from_bytes::<Sym64<LE>>(&bytes, count)
                .map_err(|()| SymbolError::not_elf(elf.path(), "its symbol table cannot be read"))?;
            for entry in entries {
                if entry.st_shndx(LE) == elf::SHN_UNDEF {
                    continue;
                }
                let name = text_at(&names, entry.st_name(LE), MAX_NAME);
                match entry.st_type() {
                    STT_FUNC => symbols.add(name, entry.st_value(LE), entry.st_size(LE)),
                    STT_TLS if name == b"errno" => symbols.errno_variable = Some(entry.st_value(LE)),
                    _ => {}
                }
            }
        }
        Ok(symbols)
    }

    fn add(&mut self, name: &[u8], address: u64, size: u64) {
        let end = self.ends.entry(address).or_insert(address);
        *end = address.saturating_add(size).max(*end);
        // In the symbol table of an unstripped library, names have the form `name@@VERSION`.
        let name = name.split(|&byte| byte == b'@').next().unwrap_or_default();
        self.is_glibc |= name == b"gnu_get_libc_version" || name == b"__libc_start_main_impl";
        self.is_musl |= name == b"__init_libc" || name == b"__libc_start_init" || name == b"__dls2b";
        if name == b"__errno_location" {
            self.errno_location = Some(address);
        }
        let Some(known) = names::known(name) else { return };
        let both = self.known.entry(address).or_insert(Some(known));
        *both = both.and_then(|before| before.or(known));
    }

    fn layout(&self) -> MutexLayout {
        // An old libpthread lacks the names by which glibc is recognised, but exports a name that musl does not have.
        if self.is_glibc
            || self.known.values().flatten().any(|known| known.name == "pthread_mutex_consistent_np")
        {
            MutexLayout::Glibc
        } else if self.is_musl {
            MutexLayout::Musl
        } else {
            MutexLayout::Unknown
        }
    }
}

/// Reads the code of `__errno_location`, which returns the thread pointer (`fs:0`) plus a number. The number is in the
/// code, or in a variable that the loader sets.
fn errno_place(elf: &ElfFile, address: u64) -> Option<ErrnoPlace> {
    let mut walker = Walker::new(elf, address);
    let (mut number, mut variable, mut thread_pointer) = (0i64, None, 0);
    for _ in 0..8 {
        let instruction = walker.instruction().ok()?;
        let result = instruction.op_count() > 0
            && instruction.op0_kind() == OpKind::Register
            && instruction.op0_register().full_register() == Register::RAX;
        let from_thread = instruction.op_count() == 2
            && instruction.op1_kind() == OpKind::Memory
            && instruction.segment_prefix() == Register::FS
            && instruction.memory_displacement64() == 0
            && instruction.memory_base() == Register::None
            && instruction.memory_index() == Register::None;
        match instruction.mnemonic() {
            Mnemonic::Endbr64 | Mnemonic::Nop => {}
            Mnemonic::Ret => {
                return match variable {
                    _ if thread_pointer != 1 => None,
                    Some(slot) => (number == 0).then_some(ErrnoPlace::In(slot)),
                    None => Some(ErrnoPlace::At(number)),
                };
            }
            Mnemonic::Mov if result && from_thread => (number, variable, thread_pointer) = (0, None, 1),
            Mnemonic::Add if result && from_thread => thread_pointer += 1,
            Mnemonic::Mov if result && instruction.is_ip_rel_memory_operand() => {
                (number, variable, thread_pointer) = (0, Some(instruction.ip_rel_memory_address()), 0);
            }
            Mnemonic::Mov if result && is_number(instruction.op1_kind()) => {
                (number, variable, thread_pointer) = (instruction.immediate(1) as i64, None, 0);
            }
            Mnemonic::Add if result && is_number(instruction.op1_kind()) => {
                number = number.checked_add(instruction.immediate(1) as i64)?;
            }
            Mnemonic::Lea if result && instruction.memory_base() == Register::RAX => {
                number = number.checked_add(instruction.memory_displacement64() as i64)?;
            }
            _ => return None,
        }
    }
    None
}

fn is_number(kind: OpKind) -> bool {
    matches!(
        kind,
        OpKind::Immediate32 | OpKind::Immediate64 | OpKind::Immediate8to64 | OpKind::Immediate32to64
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    const GLIBC: &str = "/lib/x86_64-linux-gnu/libc.so.6";
    const MUSL: &str = "/lib/ld-musl-x86_64.so.1";

    fn read(test: &str, path: &str) -> Option<LibcFunctions> {
        match libc_functions(Path::new(path)) {
            Ok(found) => Some(found),
            Err(error) => {
                println!("SKIP {test}: {error}");
                None
            }
        }
    }

    fn all_of(found: &LibcFunctions, operations: &[SyncOperation]) {
        for operation in operations {
            let known = found.functions.iter().any(|call| call.operation == *operation);
            assert!(known, "{} in {:?}", operation.name(), found.unsure);
        }
    }

    #[test]
    fn every_lock_function_of_glibc_can_be_probed() {
        let Some(found) = read("every_lock_function_of_glibc_can_be_probed", GLIBC) else { return };
        assert_eq!(found.unsure, []);
        // glibc has the same code for initialising and for unlocking a spin lock. `ThreadSilent` is no function of
        // libc.
        let no_call = [SyncOperation::SpinInit, SyncOperation::ThreadSilent];
        let but = |operation: &SyncOperation| !no_call.contains(operation);
        all_of(&found, &SyncOperation::ALL.iter().copied().filter(but).collect::<Vec<_>>());
        assert_eq!(found.layout, MutexLayout::Glibc);
        assert!(matches!(found.errno, Some(ErrnoPlace::In(_))), "{:?}", found.errno);
        assert!(!found.is_static);
        for call in &found.functions {
            let exits = call.operation == SyncOperation::ThreadExit;
            assert_eq!(call.leaves.is_empty(), exits, "{}", call.name);
            assert_eq!(call.ran.is_empty(), call.operation != SyncOperation::Once, "{}", call.name);
        }
        // glibc has two versions of condition variables, so there are two functions with one name.
        let waits = found.functions.iter().filter(|call| call.name == "pthread_cond_wait").count();
        assert_eq!(waits, 2);
    }

    #[test]
    fn every_lock_function_of_musl_can_be_probed() {
        let Some(found) = read("every_lock_function_of_musl_can_be_probed", MUSL) else { return };
        assert_eq!(found.unsure, []);
        // `ThreadSilent` is no function of libc.
        let is_call = |operation: &SyncOperation| *operation != SyncOperation::ThreadSilent;
        all_of(&found, &SyncOperation::ALL.iter().copied().filter(is_call).collect::<Vec<_>>());
        assert_eq!(found.layout, MutexLayout::Musl);
        assert!(matches!(found.errno, Some(ErrnoPlace::At(_))), "{:?}", found.errno);
    }

    #[test]
    fn a_program_without_a_libc_inside_has_no_lock_functions() {
        // This test program imports some of the functions and contains none.
        let found = libc_functions(Path::new("/proc/self/exe")).expect("this test");
        assert_eq!(found.functions, []);
    }

    #[test]
    fn lock_functions_of_a_cut_or_changed_libc_never_panic() {
        let Ok(whole) = std::fs::read(GLIBC) else {
            println!("SKIP lock_functions_of_a_cut_or_changed_libc_never_panic: no glibc");
            return;
        };
        let folder = tempfile::tempdir().expect("folder");
        let path = folder.path().join("cut");
        for length in [0, 63, 64, 500, 4_000, whole.len() / 3, whole.len() / 2, whole.len() - 1] {
            std::fs::write(&path, &whole[..length]).expect("written");
            let _ = libc_functions(&path);
        }
        // Damaged tables.
        for at in (0..whole.len()).step_by(whole.len() / 40) {
            let mut changed = whole.clone();
            let end = (at + 64).min(changed.len());
            changed[at..end].iter_mut().for_each(|byte| *byte ^= 0x5a);
            std::fs::write(&path, &changed).expect("written");
            let _ = libc_functions(&path);
        }
    }
}
