//! Whether code really starts at a function symbol. A symbol proves nothing: hand-written tables are typed as functions, and a
//! wrong symbol may lie in the middle of a function. A breakpoint in data changes the data, and one inside an instruction makes
//! it another instruction.
//!
//! Compilers and careful assembly describe each function in the unwind tables, by its exact start. Without an entry, a direct
//! call to the address proves it. An address inside an entry that starts elsewhere is no start.

use crate::code::UnwindTables;
use crate::elf::ModuleFunctions;
use rustc_hash::FxHashSet;
use std::cell::OnceCell;

/// Largest amount of code that is searched for calls, bytes.
const MOST_CODE: u64 = 256 << 20;
const PIECE: u64 = 1 << 20;
/// Bytes of a direct call.
const CALL: u64 = 5;

/// Proofs of the starts of a module's functions.
pub struct Proofs<'a> {
    module: &'a ModuleFunctions,
    unwind: Option<&'a UnwindTables>,
    called: OnceCell<FxHashSet<u64>>,
}

impl<'a> Proofs<'a> {
    /// Proofs that symbols of a module are functions, by these unwind tables.
    pub fn new(module: &'a ModuleFunctions, unwind: Option<&'a UnwindTables>) -> Proofs<'a> {
        Proofs { module, unwind, called: OnceCell::new() }
    }

    /// Whether a function is proven to start at this linked address. Always true for Go, whose own table lists only functions,
    /// and for architectures other than x86-64, where calls cannot be read.
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

/// Starts of functions, according to their symbols, to which a direct call leads.
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

/// The targets of all bytes that may be a direct call.
fn calls(code: &[u8], base: u64) -> impl Iterator<Item = u64> {
    code.windows(CALL as usize).enumerate().filter(|(_, bytes)| bytes[0] == 0xe8).map(move |(at, bytes)| {
        let distance = i32::from_le_bytes([bytes[1], bytes[2], bytes[3], bytes[4]]);
        base.wrapping_add(at as u64 + CALL).wrapping_add_signed(i64::from(distance))
    })
}
