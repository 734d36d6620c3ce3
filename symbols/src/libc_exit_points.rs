//! Through which instructions a call of a function comes back, wherever jumps lead: libc's functions are stripped of
//! the names that [`super::exits`] needs to tell a jump inside a function from one to another function.
//!
//! The walk begins at a function's first instruction and follows every path: after a call to the next
//! instruction, at a jump to its target, at a branch to both. A jump to another function is no end: that one
//! returns to our caller. So every `ret` it finds ends a call of this function, whichever function it belongs
//! to by name; a probe there knows from the stack pointer whose call ends. All addresses are reached by
//! instructions from a function's start: no probe is inside an instruction.

use super::code::{Flow, Walker, decode};
use super::elf_file::ElfFile;
use super::unknown_exits::UnknownExits;
use super::unwind::UnwindTables;
use rustc_hash::FxHashSet;
use std::collections::BTreeMap;

/// Instructions on the ways of one function: the largest has some 2,000.
const MOST_STEPS: usize = 20_000;

/// Largest function with a table, bytes.
const LARGEST: u64 = 1 << 20;

/// What the walk has found; addresses as linked, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExitPoints {
    /// Every `ret`.
    pub returns: Vec<u64>,
    /// Every call through a register or a variable.
    pub indirect_calls: Vec<u64>,
    /// The first argument's register is the same at each `ret` as at the start.
    pub keeps_first_argument: bool,
}

/// What is known of a file's functions, by unwind tables and symbols; either may be missing.
pub struct Bounds<'a> {
    /// The unwind tables.
    pub unwind: Option<&'a UnwindTables>,
    /// Start → end of functions, as symbols give it; a function without a size ends where it starts.
    pub symbols: &'a BTreeMap<u64, u64>,
}

impl Bounds<'_> {
    fn is_start(&self, address: u64) -> bool {
        self.symbols.contains_key(&address) || self.unwind.is_some_and(|tables| tables.starts_at(address))
    }

    /// Start and end of the function that holds the address.
    pub(super) fn around(&self, address: u64) -> Option<(u64, u64)> {
        let by_symbol = || {
            let (&start, &end) = self.symbols.range(..=address).next_back()?;
            (address < end).then_some((start, end))
        };
        self.unwind.and_then(|tables| tables.stretch_of(address)).or_else(by_symbol)
    }
}

/// Walks the function that starts at `start`. What runs into the start of another function without a jump is what follows
/// a call that does not come back.
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

/// Where a jump through a table may lead: to every place in its function that is not reached from the instruction before.
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
