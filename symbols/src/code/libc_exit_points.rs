//! Finds the `ret` instructions by which a call of a function may return, through whatever jumps. libc has no names for
//! most of its functions. Without names, [`super::exits`] cannot distinguish a jump inside a function from a jump to
//! another function.
//!
//! The walk begins at a function's first instruction and follows every path. After a call the walk continues with the
//! next instruction, at a jump with its target, and at a branch with both. The walk also follows jumps to other
//! functions, because such a function returns to the same caller. So every `ret` on a path ends a call of the first
//! function, even if the `ret` belongs to another function by name. The stack pointer at the probe shows which call
//! ends. The walk decodes from a function's start, so no probe is inside an instruction.

use super::instructions::{Flow, Walker, decode};
use super::unknown_exits::UnknownExits;
use super::unwind::UnwindTables;
use crate::elf::ElfFile;
use rustc_hash::FxHashSet;
use std::collections::BTreeMap;

/// Largest number of instructions on the paths of one function. libc's largest function has about 2,000.
const MOST_STEPS: usize = 20_000;

/// Largest function with a jump table that is decoded, bytes.
const LARGEST: u64 = 1 << 20;

/// The result of the walk. All addresses are as linked, ascending.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExitPoints {
    /// Every `ret`.
    pub returns: Vec<u64>,
    /// Every call whose target is in a register or in a variable.
    pub indirect_calls: Vec<u64>,
    /// Whether the register of the first argument still has its value at each `ret`.
    pub keeps_first_argument: bool,
}

/// The starts and ends of a file's functions, from unwind tables and symbols. Either source may be missing.
pub struct Bounds<'a> {
    /// The unwind tables.
    pub unwind: Option<&'a UnwindTables>,
    /// Start and end of functions, from symbols. If a symbol has no size, its end is its start.
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

/// Walks the function that starts at `start`. A path also ends where it runs into another function's start without a
/// jump: there, the last instruction before that start is a call that never returns.
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

/// The possible targets of a jump through a table. These are all instructions of the function that come after an
/// instruction which control does not pass (a jump or a return). Compilers put only instructions there, no data.
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
