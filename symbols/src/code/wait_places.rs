//! Finds which places of a module lie in loops that only wait. Each function's code is read when a place in it is first
//! looked up.

use super::wait_loops::{Callee, WaitLoop, slot_of_stub, wait_loops};
use crate::elf::{ModuleFunctions, imports};
use rustc_hash::{FxHashMap, FxHashSet};

/// Size of the largest function that is searched for loops, and of the code of a module that is searched in all, in
/// bytes.
const LARGEST: u64 = 256 << 10;
const MOST_BYTES: u64 = 64 << 20;
/// Size of a linker's stub, bytes.
const STUB: u64 = 16;

/// Symbols of functions that only give up the CPU, in C libraries, C++, Rust and Go.
const YIELDS: [&[u8]; 6] = [
    b"sched_yield",
    b"__sched_yield",
    b"thrd_yield",
    b"pthread_yield",
    b"runtime.osyield",
    b"runtime.procyield",
];

/// A part of the mangled names of Rust's `std::thread::yield_now`.
const YIELD_NOW: &[u8] = b"yield_now";

/// Which places of a module lie in loops that only wait; see the module's documentation.
#[derive(Default)]
pub(crate) struct WaitPlaces {
    /// The waiting loops of each function, by the function's address.
    loops: FxHashMap<u64, Vec<WaitLoop>>,
    /// Slots through which functions of [`YIELDS`] are called.
    slots: Option<FxHashSet<u64>>,
    bytes: u64,
}

impl WaitPlaces {
    /// Whether the instruction at this linked address is in a loop that only waits, or in a stub that leads to a yield.
    /// `Some(true)`: the loop also tries to take a lock.
    pub(crate) fn find(&mut self, module: &ModuleFunctions, address: u64) -> Option<bool> {
        if !module.elf().is_x86_64 {
            return None;
        }
        if module.is_plt(address) {
            return self.is_yield(module, Callee::At(address & !(STUB - 1))).then_some(false);
        }
        let function = module.covering(address)?;
        let (start, size) = (function.address, function.size);
        if !self.loops.contains_key(&start) {
            let loops = self.loops_of(module, start, size);
            self.loops.insert(start, loops);
        }
        let loops = self.loops.get(&start).map_or(&[][..], Vec::as_slice);
        loops.iter().find(|found| found.code.contains(&address)).map(|found| found.tries)
    }

    fn loops_of(&mut self, module: &ModuleFunctions, start: u64, size: u64) -> Vec<WaitLoop> {
        if size == 0 || size > LARGEST || self.bytes.saturating_add(size) > MOST_BYTES {
            return Vec::new();
        }
        self.bytes = self.bytes.saturating_add(size);
        let Some(code) = read(module, start, size) else { return Vec::new() };
        let slots = self.slots(module).clone();
        wait_loops(&code, start, &|callee| is_yield(module, &slots, callee))
    }

    fn is_yield(&mut self, module: &ModuleFunctions, callee: Callee) -> bool {
        is_yield(module, self.slots(module), callee)
    }

    fn slots(&mut self, module: &ModuleFunctions) -> &FxHashSet<u64> {
        self.slots.get_or_insert_with(|| {
            let all = imports(module.elf()).into_iter();
            all.filter(|import| YIELDS.contains(&import.name.as_slice()))
                .flat_map(|import| import.slots)
                .collect()
        })
    }
}

fn is_yield(module: &ModuleFunctions, slots: &FxHashSet<u64>, callee: Callee) -> bool {
    match callee {
        Callee::In(slot) => slots.contains(&slot),
        Callee::At(address) if module.is_plt(address) => {
            let stub = read(module, address, STUB);
            stub.and_then(|stub| slot_of_stub(&stub, address)).is_some_and(|slot| slots.contains(&slot))
        }
        Callee::At(address) => {
            let function = module.starting_at(address).and_then(|index| module.functions().get(index));
            function.is_some_and(|function| {
                let name = module.raw_name_bytes(function);
                YIELDS.contains(&name) || name.windows(YIELD_NOW.len()).any(|part| part == YIELD_NOW)
            })
        }
    }
}

fn read(module: &ModuleFunctions, address: u64, size: u64) -> Option<Vec<u8>> {
    let offset = module.elf().code_offset_of(address)?;
    module.elf().read(offset, size, "a function", LARGEST).ok()
}
