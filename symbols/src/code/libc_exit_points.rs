//! Finds the `ret` instructions by which a call of a function may return, wherever its jumps lead. libc's functions are
//! stripped of the names by which [`super::exits`] distinguishes a jump inside a function from one to another function.
//!
//! The walk begins at a function's first instruction and follows every path: after a call to the next instruction, at a
//! jump to its target, at a branch to both. A jump to another function is no end, because that function returns to the
//! same caller. So every `ret` that is found ends a call of this function, whichever function it belongs to by name; a
//! probe there knows from the stack pointer which call ends. Each address is reached by instructions from a function's
//! start, so no probe is inside one.

use super::instructions::{Flow, Walker, decode};
use super::unknown_exits::UnknownExits;
use super::unwind::UnwindTables;
use crate::elf::ElfFile;
use rustc_hash::FxHashSet;
use std::collections::BTreeMap;

/// Largest number of instructions on the paths of one function: the largest function has some 2,000.
const MOST_STEPS: usize = 20_000;

/// Largest function with a jump table that is decoded, bytes.
const LARGEST: u64 = 1 << 20;

/// The result of the walk; addresses as linked, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExitPoints {
    /// Every `ret`.
    pub returns: Vec<u64>,
    /// Every call through a register or a variable.
    pub indirect_calls: Vec<u64>,
    /// Whether the first argument's register is the same at each `ret` as at the start.
    pub keeps_first_argument: bool,
}

/// The bounds of a file's functions, from unwind tables and symbols; either may be missing.
pub struct Bounds<'a> {
    /// The unwind tables.
    pub unwind: Option<&'a UnwindTables>,
    /// Start → end of functions, from symbols; of a function without a size the end is its start.
    pub symbols: &'a BTreeMap<u64, u64>,
}

impl Bounds<'_> {
    fn is_start(&self, address: u64) -> bool {
        self.symbols.contains_key(&address) || self.unwind.is_some_and(|tables| tables.starts_at(address))
    }

    /// Start and end of the function that contains the address.
    pub(super) fn around(&self, address: u64) -> Option<(u64, u64)> {
        let by_symbol = || {
            let (&start, &end) = self.symbols.range(..=address).next_back()?;
            (address < end).then_some((start, end))
        };
        self.unwind.and_then(|tables| tables.stretch_of(address)).or_else(by_symbol)
    }
}

/// Walks the function that starts at `start`. A path also ends where it runs into another function's start without a jump: the
/// call before it does not return.
pub fn exit_points(elf: &ElfFile, bounds: &Bounds<'_>, start: u64) -> Result<ExitPoints, UnknownExits> {
    let mut ways = ExitPoints { keeps_first_argument: true, ..ExitPoints::default() };
    let mut seen = FxHashSet::default();
    let mut open = vec![start];
    while let Some(address) = open.pop() {
        let mut walker = Walker::new(elf, address);
        loop {
            if !seen.insert(walker.address()) {
                break;
            }
            if seen.len() > MOST_STEPS {
                return Err(UnknownExits::TooLarge);
            }
            let (step, writes_first_argument) = walker.step()?;
            ways.keeps_first_argument &= !writes_first_argument;
            match step.flow {
                Flow::Next | Flow::Padding => {}
                Flow::Call(to) => {
                    ways.keeps_first_argument = false;
                    if to.is_none() {
                        ways.indirect_calls.push(step.address);
                    }
                }
                Flow::Branch(to) => open.push(to),
                Flow::Jump(to) => {
                    open.push(to);
                    break;
                }
                Flow::Return if !step.can_hold_probe => return Err(UnknownExits::NotProbeable),
                Flow::Return => {
                    ways.returns.push(step.address);
                    break;
                }
                Flow::Stop => break,
                Flow::TableJump => {
                    open.extend(beginnings(elf, bounds, step.address)?);
                    break;
                }
                Flow::SlotJump | Flow::UnknownJump => return Err(UnknownExits::IndirectJump),
            }
            if bounds.is_start(step.end()) {
                break;
            }
        }
    }
    ways.returns.sort_unstable();
    ways.indirect_calls.sort_unstable();
    Ok(ways)
}

/// The possible targets of a jump through a table: each instruction in its function after one that control does not pass.
/// Compilers put nothing but instructions there.
pub(super) fn beginnings(elf: &ElfFile, bounds: &Bounds<'_>, jump: u64) -> Result<Vec<u64>, UnknownExits> {
    let (start, end) = bounds.around(jump).ok_or(UnknownExits::IndirectJump)?;
    let offset = elf.code_offset_of(start).ok_or(UnknownExits::Unreadable)?;
    let bytes = elf.read(offset, end - start, "a function", LARGEST).map_err(|_| UnknownExits::TooLarge)?;
    let steps = decode(&bytes, start)?;
    let mut after_end = false;
    let beginnings = steps
        .iter()
        .filter(|step| {
            let ends = matches!(
                step.flow,
                Flow::Jump(_)
                    | Flow::Return
                    | Flow::Stop
                    | Flow::TableJump
                    | Flow::SlotJump
                    | Flow::UnknownJump
            );
            std::mem::replace(&mut after_end, ends)
        })
        .map(|step| step.address);
    Ok(beginnings.collect())
}
