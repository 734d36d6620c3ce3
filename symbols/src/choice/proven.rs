//! Finds out whether code really starts at a function symbol. A symbol alone proves nothing: assembly code may give
//! tables of data the type of a function, and a wrong symbol may point into the middle of a function. A breakpoint in
//! data would change the data; a breakpoint inside an instruction would make it another instruction.
//!
//! Compilers and careful assembly code describe each function in the unwind tables, by its exact start. For code
//! without an unwind entry, a direct call to the address is the proof. An address inside an unwind entry that starts
//! elsewhere is not the start of a function.

use crate::code::UnwindTables;
use crate::elf::ModuleFunctions;
use rustc_hash::FxHashSet;
use std::cell::OnceCell;

/// Largest amount of code that is searched for calls, in bytes.
const MOST_CODE: u64 = 256 << 20;
const PIECE: u64 = 1 << 20;
/// Length of a direct call instruction, in bytes.
const CALL: u64 = 5;

/// Proofs of the starts of a module's functions.
pub struct Proofs<'a> {
    module: &'a ModuleFunctions,
    unwind: Option<&'a UnwindTables>,
    called: OnceCell<FxHashSet<u64>>,
}

impl<'a> Proofs<'a> {
    /// Collects the proofs from a module and its unwind tables.
    pub fn new(module: &'a ModuleFunctions, unwind: Option<&'a UnwindTables>) -> Proofs<'a> {
        Proofs { module, unwind, called: OnceCell::new() }
    }

    /// Whether a function is proven to start at this linked address. Always true for Go, whose own function table lists
    /// only functions. Also always true on architectures other than x86-64, whose call instructions longpole does not
    /// decode.
    pub fn starts_at(&self, address: u64) -> bool {
        if self.module.is_go() || !self.module.elf().is_x86_64 {
            return true;
        }
        if let Some(unwind) = self.unwind {
            if unwind.starts_at(address) {
                return true;
            }
            if unwind.stretch_of(address).is_some() {
                return false;
            }
        }
        self.called.get_or_init(|| called(self.module)).contains(&address)
    }
}

/// Addresses of function symbols that are the target of a direct call.
fn called(module: &ModuleFunctions) -> FxHashSet<u64> {
    let elf = module.elf();
    let starts: FxHashSet<u64> = module.functions().iter().map(|function| function.address).collect();
    let mut called = FxHashSet::default();
    let mut left = MOST_CODE;
    for section in elf.code_sections() {
        let size = section.size.min(left);
        left -= size;
        for from in (0..size).step_by(PIECE as usize) {
            let length = (size - from).min(PIECE + CALL - 1);
            let Some(at) = section.offset.checked_add(from) else { break };
            let Ok(bytes) = elf.read(at, length, "code", length) else { break };
            let base = section.address.wrapping_add(from);
            called.extend(calls(&bytes, base).filter(|to| starts.contains(to)));
        }
    }
    called
}

/// The targets of all byte sequences that look like a direct call.
fn calls(code: &[u8], base: u64) -> impl Iterator<Item = u64> {
    code.windows(CALL as usize).enumerate().filter(|(_, bytes)| bytes[0] == 0xe8).map(move |(at, bytes)| {
        let distance = i32::from_le_bytes([bytes[1], bytes[2], bytes[3], bytes[4]]);
        base.wrapping_add(at as u64 + CALL).wrapping_add_signed(i64::from(distance))
    })
}
