//! A process whose stacks are sampled: its code, its unwinder, and its stacks that wait.

use super::address_space::AddressSpace;
use super::depth::Depth;
use super::leaf::Leaf;
use super::reader::{Ask, Reader};
use super::unwinding::{Copied, Unwinding, Unwound};
use probe_abi::{MAX_KEEPING, MAX_ROOTS, REGISTERS, RawCopy, SampledCode};
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// A process during the time in which it runs one program.
#[derive(Default)]
pub(super) struct SampledProcess {
    pub space: AddressSpace,
    pub unwinding: Unwinding,
    /// For each root: the return addresses from the outermost function with frame pointers up to the last frame.
    pub roots: Vec<Vec<u64>>,
    pub depth: Depth,
    /// Whether a reading of the process's mappings is under way.
    pub looking: bool,
    pub waiting: Vec<Waiting>,
}

/// A stack that cannot be reported yet, although samples already refer to its number.
#[derive(Debug)]
pub(super) struct Waiting {
    pub number: u32,
    pub pid: u32,
    pub time_ns: u64,
    /// Since when the process has run the program in which the stack was taken.
    pub since_ns: u64,
    pub stack: Kept,
    /// Further facts about the innermost place of the stack.
    pub leaf: Leaf,
    pub on: On,
    /// The process was looked at for this stack. That is done once only, since a program may make code all the time.
    pub looked: bool,
}

/// The answer that a stack waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum On {
    /// The stack waits for the result of reading the process's mappings.
    Look,
    /// The unwind tables of the code that begins at this address.
    Tables(u64),
}

/// The present form of a stack: frames, or copied bytes with registers.
#[derive(Debug)]
pub(super) enum Kept {
    Frames(Vec<u64>),
    Copy {
        instruction_pointer: u64,
        stack_pointer: u64,
        frame_pointer: u64,
        registers: Box<[u64; REGISTERS.len()]>,
        from: u64,
        bytes: Box<[u8]>,
    },
}

impl Kept {
    pub fn of(raw: &RawCopy) -> Kept {
        Kept::Copy {
            instruction_pointer: raw.instruction_pointer,
            stack_pointer: raw.stack_pointer,
            frame_pointer: raw.frame_pointer,
            registers: Box::new(raw.last.registers),
            from: raw.from,
            bytes: Box::from(Copied::of(raw).bytes),
        }
    }

    /// Number of bytes of memory that the stack takes.
    pub fn bytes(&self) -> usize {
        let own = match self {
            Kept::Frames(frames) => frames.len() * 8,
            Kept::Copy { bytes, registers, .. } => bytes.len() + size_of_val(&**registers),
        };
        own + size_of::<Waiting>()
    }

    /// The copied stack; `None` if it is frames already.
    pub fn copied(&self) -> Option<Copied<'_>> {
        match self {
            Kept::Frames(_) => None,
            Kept::Copy { instruction_pointer, stack_pointer, frame_pointer, registers, from, bytes } => {
                Some(Copied {
                    instruction_pointer: *instruction_pointer,
                    stack_pointer: *stack_pointer,
                    frame_pointer: *frame_pointer,
                    registers: **registers,
                    from: *from,
                    bytes,
                })
            }
        }
    }
}

impl SampledProcess {
    pub fn new(since_ns: u64) -> SampledProcess {
        SampledProcess { space: AddressSpace::new(since_ns), ..SampledProcess::default() }
    }

    fn keeps(&self, address: u64) -> bool {
        self.unwinding.keeping.iter().any(|[start, length]| address.wrapping_sub(*start) < *length)
    }

    /// Learns depth and root from a stack. Returns whether the kernel programs need a new setting.
    pub fn learn(&mut self, unwound: &Unwound, copied: usize) -> bool {
        let new_depth = match unwound {
            Unwound { whole: true, reach, .. } => self.depth.whole(*reach),
            Unwound { beyond: true, .. } => self.depth.cut(copied),
            _ => false,
        };
        let new_root = unwound.whole && self.learn_root(&unwound.frames);
        new_depth || new_root
    }

    /// Learns the root of a complete stack: the address at which it finally leaves the code that keeps frame pointers.
    /// Returns whether the root is new.
    fn learn_root(&mut self, frames: &[u64]) -> bool {
        let Some(at) = frames.iter().position(|&frame| !self.keeps(frame)).filter(|&at| at > 0) else {
            return false;
        };
        let above = frames.get(at..).unwrap_or_default();
        // The outermost function may again be in such code, since a program starts there.
        let for_good =
            above.split_last().is_some_and(|(_, rest)| rest.iter().all(|&frame| !self.keeps(frame)));
        let known = self.roots.iter().any(|root| root.first() == above.first());
        if !for_good || known || self.roots.len() >= MAX_ROOTS {
            return false;
        }
        self.roots.push(above.to_vec());
        true
    }

    /// The facts about the process's code that the programs need.
    pub fn code(&self) -> SampledCode {
        let mut code = SampledCode::default();
        for (to, from) in code.keeping.iter_mut().zip(self.unwinding.keeping.iter().take(MAX_KEEPING)) {
            *to = *from;
        }
        for (to, from) in code.roots.iter_mut().zip(&self.roots) {
            *to = from.first().copied().unwrap_or(0);
        }
        code.copy_pieces = self.depth.pieces();
        code
    }

    /// Removes and returns the stacks that have waited for this.
    pub fn served(&mut self, on: On) -> impl Iterator<Item = Waiting> + '_ {
        self.waiting.extract_if(.., move |waiting| waiting.on == on)
    }
}

/// The process during the time in which it ran the program that it began at `since_ns`.
pub(super) fn of<'a>(
    now: &'a mut FxHashMap<u32, SampledProcess>,
    past: &'a mut [(u32, SampledProcess)],
    pid: u32,
    since_ns: u64,
) -> Option<&'a mut SampledProcess> {
    let is_it = |process: &&mut SampledProcess| process.space.since_ns == since_ns;
    let past = past.iter_mut().filter(|(of, _)| *of == pid).map(|(_, process)| process);
    now.get_mut(&pid).filter(is_it).or_else(|| past.rev().find(is_it))
}

/// Starts a reading of a process's mappings, if one is due. Returns whether a reading is under way.
pub(super) fn ask_look(process: &mut SampledProcess, reader: Option<&Reader>, pid: u32, now_ns: u64) -> bool {
    if process.looking {
        return true;
    }
    let Some(reader) = reader.filter(|_| process.space.is_due()) else { return false };
    process.space.begin_look();
    process.looking = true;
    let since_ns = process.space.since_ns;
    let known = Arc::clone(&process.space.code);
    let new_ns = if known.is_empty() { since_ns } else { now_ns };
    let told = process.space.told.since_look();
    reader.ask(Ask::Look { pid, since_ns, new_ns, known, told });
    true
}
