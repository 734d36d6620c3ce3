//! Finds which places of a function are reached after a call that takes a lock and before any call that releases the
//! lock. A thread at such a place holds the lock. Stacks of threads that waited for the lock show the taking calls;
//! stacks of threads that woke a waiter show the releasing calls. (This method is longpole's own.)
//!
//! The walk begins where the taking call returns, and follows every path as [`super::libc_exit_points`] does, up to the
//! releasing calls and to the function's end. Where taking and releasing are inlined, only their slow paths are calls:
//! an atomic instruction shortly before the call that wakes a waiter releases the lock. So the walk ends at that
//! instruction, too.

use super::instructions::{Flow, Step, Walker};
use super::libc_exit_points::{Bounds, beginnings};
use super::unknown_exits::UnknownExits;
use super::unwind::UnwindTables;
use crate::elf::{ElfFile, FunctionKind, ModuleFunctions};
use iced_x86::{Mnemonic, OpKind};
use rustc_hash::{FxHashMap, FxHashSet};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::collections::hash_map::Entry;

/// Largest number of instructions after one taking call. In a longer critical section, samples could not separate the
/// code under the lock from other code.
const MOST_STEPS: usize = 20_000;
/// Largest number of instructions between the atomic instruction that releases a lock and the call that wakes the
/// waiter.
const WAKES_WITHIN: usize = 12;
/// Largest number of calls in one request.
pub const MOST_CALLS: usize = 1 << 12;
/// Largest number of places in one request.
pub const MOST_PLACES: usize = 1 << 16;

/// A call that takes a lock, and the calls in the same function that release the lock. The number for a call is the
/// file offset of the last byte before its return address.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LockCall {
    /// The call after which the thread holds the lock.
    pub taken: u64,
    /// The calls that release the lock: after them, the thread does not hold it.
    pub given: Vec<u64>,
}

/// For each call, the indices of the places (file offsets) at which a thread holds the call's lock. `None` if the code
/// after the call cannot be followed.
pub type LockRegions = Vec<Option<Vec<u32>>>;

/// Finds at which places a thread holds the lock of which call. Works on x86-64 only.
pub fn lock_regions(module: &ModuleFunctions, calls: &[LockCall], places: &[u64]) -> LockRegions {
    let elf = module.elf();
    if !elf.is_x86_64 {
        return vec![None; calls.len()];
    }
    let symbols: BTreeMap<u64, u64> = module
        .functions()
        .iter()
        .map(|function| (function.address, function.address.saturating_add(function.size)))
        .collect();
    let unwind = UnwindTables::read(elf);
    let bounds = Bounds { unwind: unwind.as_ref(), symbols: &symbols };
    let places: Vec<(u64, u32)> = places
        .iter()
        .zip(0u32..)
        .take(MOST_PLACES)
        .filter_map(|(&place, number)| Some((elf.code_address_of(place)?, number)))
        .collect();
    let mut tables = Tables::default();
    let mut of_call = |call: &LockCall| {
        let section = Section::behind(module, &bounds, &mut tables, call).ok()?;
        Some(places.iter().filter(|place| section.holds(place.0)).map(|place| place.1).collect())
    };
    calls.iter().enumerate().map(|(n, call)| (n < MOST_CALLS).then(|| of_call(call)).flatten()).collect()
}

/// Targets of jumps through tables ([`beginnings`]), by function. A function may have hundreds of such jumps, all with
/// the same targets.
#[derive(Default)]
struct Tables(FxHashMap<u64, Vec<u64>>);

impl Tables {
    fn of(&mut self, elf: &ElfFile, bounds: &Bounds<'_>, jump: u64) -> Result<(u64, &[u64]), UnknownExits> {
        let (function, _) = bounds.around(jump).ok_or(UnknownExits::IndirectJump)?;
        let known = match self.0.entry(function) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(new) => new.insert(beginnings(elf, bounds, jump)?),
        };
        Ok((function, known))
    }
}

/// The instructions after a call that takes a lock, up to the release of the lock.
#[derive(Debug, Default)]
struct Section {
    steps: BTreeMap<u64, Seen>,
}

#[derive(Clone, Copy, Debug)]
struct Seen {
    step: Step,
    is_atomic: bool,
    gives: bool,
}

impl Section {
    fn behind(
        module: &ModuleFunctions,
        bounds: &Bounds<'_>,
        tables: &mut Tables,
        call: &LockCall,
    ) -> Result<Section, UnknownExits> {
        let address = |offset: u64| module.elf().code_address_of(offset).ok_or(UnknownExits::Unreadable);
        let start = address(call.taken)?.saturating_add(1);
        let given: Vec<u64> = call.given.iter().map(|&offset| address(offset)).collect::<Result<_, _>>()?;
        let mut all = Section::default();
        all.walk(module, bounds, tables, start, &given, &FxHashSet::default())?;
        let freeing = all.freeing();
        if freeing.is_empty() {
            return Ok(all);
        }
        let mut section = Section::default();
        section.walk(module, bounds, tables, start, &given, &freeing)?;
        Ok(section)
    }

    fn holds(&self, address: u64) -> bool {
        let found = self.steps.range(..=address).next_back();
        found.is_some_and(|(_, seen)| address < seen.step.end() && !seen.gives)
    }

    fn walk(
        &mut self,
        module: &ModuleFunctions,
        bounds: &Bounds<'_>,
        tables: &mut Tables,
        start: u64,
        given: &[u64],
        freeing: &FxHashSet<u64>,
    ) -> Result<(), UnknownExits> {
        let mut open = vec![start];
        let mut opened = FxHashSet::default();
        while let Some(address) = open.pop() {
            let mut walker = Walker::new(module.elf(), address);
            while !self.steps.contains_key(&walker.address()) {
                if self.steps.len() > MOST_STEPS {
                    return Err(UnknownExits::TooLarge);
                }
                let (step, _) = walker.step()?;
                let instruction = walker.last();
                let is_memory = (0..instruction.op_count()).any(|n| instruction.op_kind(n) == OpKind::Memory);
                let is_atomic =
                    instruction.has_lock_prefix() || instruction.mnemonic() == Mnemonic::Xchg && is_memory;
                let gives = given.iter().any(|place| (step.address..step.end()).contains(place));
                self.steps.insert(step.address, Seen { step, is_atomic, gives });
                if gives || freeing.contains(&step.address) {
                    break;
                }
                match step.flow {
                    Flow::Next | Flow::Padding | Flow::Call(_) => {}
                    Flow::Branch(to) if is_elsewhere(module, bounds, to) => {}
                    Flow::Branch(to) => open.push(to),
                    Flow::Jump(to) => {
                        open.extend(Some(to).filter(|&to| !is_elsewhere(module, bounds, to)));
                        break;
                    }
                    // While the lock is held, any jump through a register is a jump through a table: a function that
                    // releases the lock does not leave before the release.
                    Flow::TableJump | Flow::UnknownJump => {
                        let (function, places) = tables.of(module.elf(), bounds, step.address)?;
                        if opened.insert(function) {
                            open.extend(places);
                        }
                        break;
                    }
                    Flow::Return | Flow::Stop | Flow::SlotJump => break,
                }
                // If the call is the last instruction of its function, it never returns, and the code after it belongs
                // to another function.
                let ends = || bounds.around(step.address).is_some_and(|(_, end)| end <= step.end());
                if is_elsewhere(module, bounds, step.end()) || matches!(step.flow, Flow::Call(_)) && ends() {
                    break;
                }
            }
        }
        Ok(())
    }

    /// Addresses of the atomic instructions shortly before a releasing call, which release the lock.
    fn freeing(&self) -> FxHashSet<u64> {
        let atomic = self.steps.values().filter(|seen| seen.is_atomic);
        atomic.map(|seen| seen.step.address).filter(|&from| self.gives_soon(from)).collect()
    }

    fn gives_soon(&self, from: u64) -> bool {
        let mut distances: FxHashMap<u64, usize> = FxHashMap::from_iter([(from, 0)]);
        let mut open = vec![from];
        while let Some(address) = open.pop() {
            let Some(seen) = self.steps.get(&address) else { continue };
            if seen.gives {
                return true;
            }
            let distance = distances.get(&address).copied().unwrap_or(0);
            let is_other = address != from && seen.is_atomic;
            if distance >= WAKES_WITHIN || is_other || matches!(seen.step.flow, Flow::Call(_)) {
                continue;
            }
            let (next, other) = match seen.step.flow {
                Flow::Next | Flow::Padding => (Some(seen.step.end()), None),
                Flow::Branch(to) => (Some(seen.step.end()), Some(to)),
                Flow::Jump(to) => (None, Some(to)),
                _ => (None, None),
            };
            for to in next.into_iter().chain(other) {
                let known = distances.entry(to).or_insert(usize::MAX);
                if distance + 1 < *known {
                    *known = distance + 1;
                    open.push(to);
                }
            }
        }
        false
    }
}

/// Whether another function starts at the address. A jump there is a tail call: that function returns to the same
/// caller.
fn is_elsewhere(module: &ModuleFunctions, bounds: &Bounds<'_>, address: u64) -> bool {
    match module.starting_at(address) {
        Some(index) => module.functions().get(index).is_some_and(|found| found.kind != FunctionKind::Cold),
        None if module.functions().is_empty() => {
            bounds.unwind.is_some_and(|tables| tables.starts_at(address))
        }
        None => module.is_plt(address),
    }
}
