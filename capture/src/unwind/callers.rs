//! Finds the caller of a frame: by a rule of the unwind tables, by the frame pointer, or by the word at the stack pointer.

use probe_abi::REGISTERS;
use std::cell::Cell;
use symbols::{FrameAt, Rule, Saved};

/// Copied bytes of a stack.
pub(super) struct Stack<'a> {
    from: u64,
    bytes: &'a [u8],
    /// Number of bytes, from the first one, that were read so far.
    pub(super) reach: Cell<usize>,
    /// A word beyond the copied bytes was wanted.
    pub(super) beyond: Cell<bool>,
    /// General registers in the innermost function, in the order of [`REGISTERS`].
    registers: [u64; REGISTERS.len()],
}

impl<'a> Stack<'a> {
    /// A copy of the bytes from this address on, with the registers of the innermost function.
    pub(super) fn new(from: u64, bytes: &'a [u8], registers: [u64; REGISTERS.len()]) -> Stack<'a> {
        Stack { from, bytes, reach: Cell::new(0), beyond: Cell::new(false), registers }
    }

    fn register(&self, number: u8) -> Option<u64> {
        let index = REGISTERS.iter().position(|&other| other == number)?;
        self.registers.get(index).copied()
    }

    fn word(&self, address: u64) -> Option<u64> {
        let at = usize::try_from(address.checked_sub(self.from)?).ok()?;
        let Some(word) = self.bytes.get(at..).and_then(|rest| rest.first_chunk()) else {
            self.beyond.set(true);
            return None;
        };
        self.reach.set(self.reach.get().max(at.saturating_add(8)));
        Some(u64::from_le_bytes(*word))
    }
}

/// A function in progress.
#[derive(Clone, Copy)]
pub(super) struct Frame {
    pub(super) instruction: u64,
    pub(super) stack_pointer: u64,
    /// The caller's frame pointer; `None`: unknown.
    pub(super) frame_pointer: Option<u64>,
    /// Whether the instruction is the one after a call, and not an interrupted one.
    pub(super) is_return: bool,
    /// Whether all registers are known; that is so in the innermost frame.
    pub(super) has_registers: bool,
}

pub(super) enum Caller {
    Is(Frame),
    /// The frame is that of the thread's first function.
    None,
    Lost,
}

fn above(address: u64, distance: i32) -> u64 {
    address.wrapping_add_signed(i64::from(distance))
}

pub(super) fn by_rule(at: &Frame, rule: &Rule, stack: &Stack<'_>) -> Caller {
    caller_by_rule(at, rule, stack).unwrap_or(Caller::Lost)
}

fn caller_by_rule(at: &Frame, rule: &Rule, stack: &Stack<'_>) -> Option<Caller> {
    let sp = at.stack_pointer;
    let frame = match rule.frame {
        FrameAt::Unknown => return None,
        // Without a return address the function has no caller, whatever else the rule says.
        _ if rule.back == Saved::Lost => return Some(Caller::None),
        FrameAt::Stack(distance) => above(sp, distance),
        FrameAt::Pointer(distance) => above(at.frame_pointer?, distance),
        FrameAt::InStack(distance) => stack.word(above(sp, distance))?,
        FrameAt::InPointer(distance) => stack.word(above(at.frame_pointer?, distance))?,
        FrameAt::Calls(from) => sp.wrapping_add(if at.instruction & 15 >= u64::from(from) { 16 } else { 8 }),
    };
    let in_register = |saved: Saved| match saved {
        Saved::Register(number) if at.has_registers => stack.register(number),
        _ => None,
    };
    let in_register_back = in_register(rule.back);
    // Each frame must lie above the last one, or the loop would not end. Only a return address in a register adds no
    // frame size.
    if frame < sp || frame == sp && in_register_back.is_none() {
        return None;
    }
    let place = |saved: Saved| match saved {
        Saved::Frame(distance) => Some(above(frame, distance)),
        Saved::Stack(distance) => Some(above(sp, distance)),
        Saved::Pointer(distance) => Some(above(at.frame_pointer?, distance)),
        Saved::Same | Saved::Register(_) | Saved::Lost => None,
    };
    let frame_pointer = match rule.pointer {
        Saved::Same => at.frame_pointer,
        // A function about to return has restored the pointer already, which compilers leave out of the table.
        saved => match place(saved) {
            Some(place) if place < sp && !at.is_return => at.frame_pointer,
            Some(place) => stack.word(place),
            None => in_register(saved),
        },
    };
    let instruction = match in_register_back {
        Some(instruction) => instruction,
        None => stack.word(place(rule.back)?)?,
    };
    let is_return = !rule.is_signal;
    Some(Caller::Is(Frame {
        instruction,
        stack_pointer: frame,
        frame_pointer,
        is_return,
        has_registers: false,
    }))
}

/// The caller of a function without a frame: the return address is at the stack pointer.
pub(super) fn returning(at: &Frame, stack: &Stack<'_>) -> Caller {
    let Some(instruction) = stack.word(at.stack_pointer) else { return Caller::Lost };
    let stack_pointer = at.stack_pointer.wrapping_add(8);
    let frame_pointer = at.frame_pointer;
    Caller::Is(Frame { instruction, stack_pointer, frame_pointer, is_return: true, has_registers: false })
}

pub(super) fn by_frame_pointer(at: &Frame, stack: &Stack<'_>) -> Caller {
    const WORD: u64 = 8;
    let Some(pointer) = at.frame_pointer else { return Caller::Lost };
    if pointer == 0 {
        return Caller::None;
    }
    let stack_pointer = pointer.wrapping_add(2 * WORD);
    let words = stack.word(pointer).zip(stack.word(pointer.wrapping_add(WORD)));
    match words {
        Some((frame_pointer, instruction)) if stack_pointer > at.stack_pointer => Caller::Is(Frame {
            instruction,
            stack_pointer,
            frame_pointer: Some(frame_pointer),
            is_return: true,
            has_registers: false,
        }),
        _ => Caller::Lost,
    }
}
