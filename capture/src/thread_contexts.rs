//! Where the threads of a process publish for which trace they work (OpenTelemetry's thread context, OTEP 4947): an exported
//! thread-local variable of the program or of one of its libraries. Only memory that the loader has filled in is read.

use crate::target::{Module, Process, mapped};
use probe_abi::ContextPlace;
use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use symbols::{Outline, TlsSlot, TlsVariable};

/// The variable's name.
pub const NAME: &str = "otel_thread_ctx_v1";
/// Largest number of a library with thread-local variables that is believed.
const MOST_MODULES: u32 = 1 << 16;
/// Largest distance of a variable from the thread pointer that is believed, bytes.
const FARTHEST: u64 = 1 << 30;

/// What is known about the place of a process's contexts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// The place.
    At(ContextPlace),
    /// The loader has not filled in the place yet.
    NotYet,
    /// There is such a variable, but not in a known way.
    Unknown(Why),
    /// Neither the program nor its libraries have such a variable, or the process has ended.
    Nothing,
}

/// Why the place of a variable is not known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// Neither a relocation of the library nor a fixed distance gives it.
    NoRelocation,
    /// The C library is not glibc, and keeps its tables of libraries elsewhere.
    OtherLibc,
    /// longpole may not read the process's memory.
    NoRight,
}

/// The place in a program that a process will execute, if the variable is in the program itself.
pub fn in_program(path: &Path) -> Option<ContextPlace> {
    let (file, outline) = Outline::open(path)?;
    let variable = TlsVariable::find(&file, &outline, NAME).filter(|_| outline.machine == Outline::X86_64)?;
    Some(ContextPlace { module: 0, after_exec: 1, offset: variable.in_program })
}

/// Looks for the place in a running process.
pub fn find(pid: u32) -> Found {
    let Ok(process) = Process::open(pid) else { return Found::Nothing };
    let Ok(modules) = mapped(&process) else { return Found::Nothing };
    let musl = modules.iter().any(|module| module.name().starts_with("ld-musl"));
    let found = modules.iter().find_map(|module| variable(module).map(|found| (module, found)));
    let Some((module, (variable, bias))) = found else { return Found::Nothing };
    if module.is_main {
        return Found::At(from_thread_pointer(variable.in_program));
    }
    let Some(slot) = variable.slot else { return Found::Unknown(Why::NoRelocation) };
    let Ok(memory) = File::open(Path::new("/proc").join(pid.to_string()).join("mem")) else {
        return Found::Unknown(Why::NoRight);
    };
    let word = |address: u64| {
        let mut bytes = [0; 8];
        memory.read_exact_at(&mut bytes, address).ok().map(|()| u64::from_le_bytes(bytes))
    };
    match filled(slot, variable.offset, bias, &word) {
        Some(place) if place.module != 0 && musl => Found::Unknown(Why::OtherLibc),
        Some(place) => Found::At(place),
        None => Found::NotYet,
    }
}

/// The variable of a mapped file, and what is added to the file's linked addresses.
fn variable(module: &Module) -> Option<(TlsVariable, u64)> {
    let (file, outline) = Outline::open(&module.open_path)?;
    let range = module.ranges.first()?;
    let bias = outline.bias(range.start, range.file_offset)?;
    if outline.machine != Outline::X86_64 {
        return None;
    }
    Some((TlsVariable::find(&file, &outline, NAME)?, bias))
}

fn from_thread_pointer(offset: u64) -> ContextPlace {
    ContextPlace { module: 0, after_exec: 0, offset }
}

/// The place in a slot; `None`: the slot is not filled in, or holds something else.
fn filled(slot: TlsSlot, offset: u64, bias: u64, word: &dyn Fn(u64) -> Option<u64>) -> Option<ContextPlace> {
    let fixed = |distance: u64| {
        let is_near = distance != 0 && (distance as i64).unsigned_abs() <= FARTHEST;
        is_near.then_some(from_thread_pointer(distance))
    };
    let of_module = |at: u64, offset: Option<u64>| {
        let module = u32::try_from(word(at)?).ok().filter(|module| (1..=MOST_MODULES).contains(module))?;
        let offset = match offset {
            Some(offset) => offset,
            None => word(at.wrapping_add(8))?,
        };
        (offset <= FARTHEST).then_some(ContextPlace { module, after_exec: 0, offset })
    };
    match slot {
        TlsSlot::Descriptor(at) => {
            let at = at.wrapping_add(bias);
            let _function = word(at).filter(|function| *function != 0)?;
            let argument = word(at.wrapping_add(8))?;
            // The thread-local blocks of libraries that are there at the start lie below the thread pointer.
            if (argument as i64) < 0 { fixed(argument) } else { of_module(argument, None) }
        }
        TlsSlot::Distance(at) => fixed(word(at.wrapping_add(bias))?),
        TlsSlot::Module(at) => of_module(at.wrapping_add(bias), None),
        TlsSlot::ModuleOnly(at) => of_module(at.wrapping_add(bias), Some(offset)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    fn at(words: &[(u64, u64)], slot: TlsSlot) -> Option<ContextPlace> {
        let words: BTreeMap<u64, u64> = words.iter().copied().collect();
        filled(slot, 24, 0x1000, &|address| words.get(&address).copied())
    }

    #[test]
    fn the_place_of_a_library_s_variable_is_what_the_loader_wrote() {
        let below = (-80i64) as u64;
        let fixed = Some(from_thread_pointer(below));
        let table = Some(ContextPlace { module: 3, after_exec: 0, offset: 40 });
        let descriptor = TlsSlot::Descriptor(0x10);
        assert_eq!(at(&[(0x1010, 7), (0x1018, below)], descriptor), fixed);
        assert_eq!(at(&[(0x1010, 7), (0x1018, 0x9000), (0x9000, 3), (0x9008, 40)], descriptor), table);
        assert_eq!(at(&[(0x1010, 0), (0x1018, 0)], descriptor), None, "not yet");
        assert_eq!(at(&[(0x1010, below)], TlsSlot::Distance(0x10)), fixed);
        assert_eq!(at(&[(0x1010, 3), (0x1018, 40)], TlsSlot::Module(0x10)), table);
        let only = Some(ContextPlace { module: 3, after_exec: 0, offset: 24 });
        assert_eq!(at(&[(0x1010, 3)], TlsSlot::ModuleOnly(0x10)), only);
    }

    #[test]
    fn what_no_loader_writes_is_no_place() {
        let all = [u64::MAX, 1 << 63, u64::MAX >> 1, 0];
        for first in all {
            for second in all {
                let words = [(0x1010, first), (0x1018, second)];
                for slot in [TlsSlot::Descriptor, TlsSlot::Module, TlsSlot::ModuleOnly] {
                    let found = at(&words, slot(0x10));
                    assert!(found.is_none_or(|place| (place.offset as i64).unsigned_abs() <= FARTHEST));
                }
            }
        }
        assert_eq!(at(&[], TlsSlot::Descriptor(u64::MAX)), None);
    }

    /// The test program itself has no such variable.
    #[test]
    fn a_process_without_the_variable_has_no_place() {
        assert_eq!(find(std::process::id()), Found::Nothing);
        assert_eq!(find(u32::MAX), Found::Nothing);
    }
}
