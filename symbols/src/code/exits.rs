//! Finds where control leaves a function: every `ret` and every jump to another function, as addresses for exit probes.
//!
//! A kernel program at an exit probe uses the stack pointer to find which call ends. So the stack must be level at the
//! probe: the stack pointer must have the value that it had at the function's entry, where it points to the return
//! address.
//! - At a `ret` the stack is level, because `ret` takes the return address from there.
//! - At a jump to another function's start (a tail call) the ABI requires a level stack, because that function returns
//!   to the address on top of the stack. Unwind tables must agree if there are any.
//! - A jump inside the function, to its `.cold` part or through a `switch` table, is no exit.
//! - A probe on a conditional jump to another function would fire even when the jump is not taken. A function with such
//!   a jump has unknown exits ([`UnknownExits::ConditionalTailCall`]).
//! - A jump to the function's own start is a tail call of itself: one exit, then one entry.
//!
//! A probe in the middle of an instruction destroys the program, and a function with a missed exit seems to run
//! forever. So exits are [`Exits::Sure`] only if every byte of the function is explained. A byte is explained if it is
//! padding, or belongs to an instruction that direct jumps, landing pads or a recognised `switch` table reach.

use super::body::{Body, Levels};
use super::instructions::{Flow, Step};
use super::probeable;
use super::unknown_exits::UnknownExits;
use super::unwind::UnwindTables;
use crate::elf::{Function, FunctionKind, ModuleFunctions};

/// A function's exits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Exits {
    /// All exits are known; the list has their file offsets, ascending. The list is empty if the function never
    /// returns.
    Sure(Vec<u64>),
    /// The exits are not known with certainty, so only the entry can be probed.
    Unsure(UnknownExits),
}

/// The place of the probe at a function's entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entry {
    /// The probe's distance from the function's first byte, in bytes: 0, or the length of the `nop`s that must not get
    /// a probe ([`super::probeable::is_rewritten`]). Registers and stack have the same values there as at the first
    /// instruction.
    At(u64),
    /// The kernel allows no probe on the first instruction.
    Closed,
    /// The first instruction is a `nop` that the kernel would replace by a call. The code after the `nop` may run more
    /// or less often than once for each call.
    Rewritten,
}

/// The exits and the entry of a function, as [`analyse`] finds them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Analysis {
    /// The exits.
    pub exits: Exits,
    /// Where the entry probe is placed, or why there is none.
    pub entry: Entry,
    /// Whether the function does nothing but leave: its first instruction, after `endbr64` or `nop`s, is an exit.
    pub is_stub: bool,
    /// Whether the kernel must single-step the first instruction if it has a probe.
    pub entry_stepped: bool,
    /// Whether the kernel must single-step all of the exits.
    pub exits_stepped: bool,
}

/// Finds the entry and the exits of a function of the module. `unwind` has the module's unwind tables, if there are
/// any.
pub fn analyse(module: &ModuleFunctions, unwind: Option<&UnwindTables>, index: usize) -> Analysis {
    let Some(&function) = module.functions().get(index) else {
        return Analysis {
            exits: Exits::Unsure(UnknownExits::Unreadable),
            entry: Entry::Closed,
            is_stub: false,
            entry_stepped: false,
            exits_stepped: false,
        };
    };
    let start = start_of(module, &function);
    let exits = if module.is_go() {
        Err(UnknownExits::Go)
    } else if !module.elf().is_x86_64 {
        Err(UnknownExits::Architecture)
    } else {
        Body::read(module, unwind, index).and_then(|body| match start.entry {
            Entry::At(shift) if body.leads_into(function.address, shift) => Err(UnknownExits::LoopToEntry),
            _ => body.exits(module),
        })
    };
    let (exits, exits_stepped) = match exits {
        Ok((offsets, stepped)) => (Ok(offsets), stepped),
        Err(reason) => (Err(reason), false),
    };
    let entry = match (start.entry, &exits) {
        _ if !module.elf().is_x86_64 => Entry::At(0),
        (Entry::At(1..), Err(_)) => Entry::Rewritten,
        (entry, _) => entry,
    };
    let is_stub =
        matches!(&exits, Ok(exits) if start.first_work.is_some_and(|offset| exits.contains(&offset)));
    Analysis {
        exits: exits.map_or_else(Exits::Unsure, Exits::Sure),
        entry,
        is_stub,
        entry_stepped: start.stepped,
        exits_stepped,
    }
}

struct Start {
    entry: Entry,
    stepped: bool,
    /// File offset of the first instruction that is neither `endbr64` nor `nop`.
    first_work: Option<u64>,
}

fn start_of(module: &ModuleFunctions, function: &Function) -> Start {
    let size = function.size.clamp(1, 48);
    let bytes = (module.elf().read(function.file_offset, size, "a function", 48)).unwrap_or_default();
    let mut decoder =
        iced_x86::Decoder::with_ip(64, &bytes, function.address, iced_x86::DecoderOptions::NONE);
    let mut start = Start { entry: Entry::Closed, stepped: false, first_work: None };
    let mut at_entry = true;
    while decoder.can_decode() {
        let from = decoder.position();
        let instruction = decoder.decode();
        let own = bytes.get(from..decoder.position()).unwrap_or_default();
        if at_entry && probeable::is_rewritten(&instruction, own) {
            start.entry = Entry::Rewritten;
        } else if at_entry {
            at_entry = false;
            start.stepped = probeable::is_stepped(&instruction, own);
            if probeable::can_hold_probe(&instruction, own) {
                start.entry = Entry::At(from as u64);
            }
        }
        let idle = matches!(instruction.mnemonic(), iced_x86::Mnemonic::Endbr64 | iced_x86::Mnemonic::Nop);
        if !idle || instruction.is_invalid() {
            start.first_work = function.file_offset.checked_add(from as u64);
            break;
        }
    }
    start
}

impl Body {
    /// Whether an instruction of the function jumps to a place up to `shift` bytes after its start, not to the start
    /// itself. A probe at that place would count such a jump as one more call.
    fn leads_into(&self, start: u64, shift: u64) -> bool {
        self.steps.iter().any(|step| match step.flow {
            Flow::Jump(to) | Flow::Branch(to) | Flow::Call(Some(to)) => {
                to.checked_sub(start).is_some_and(|behind| behind > 0 && behind <= shift)
            }
            _ => false,
        })
    }

    /// The file offsets of all exits, and whether the kernel must single-step every one of them.
    fn exits(&self, module: &ModuleFunctions) -> Result<(Vec<u64>, bool), UnknownExits> {
        let levels = Levels::new(self);
        let mut exits = self.direct_exits(module, &levels)?;
        let reached = self.reached()?;
        exits.extend(self.indirect_exits(&levels, &reached)?);
        let mut offsets: Vec<u64> =
            exits.iter().map(|&step| self.exit_offset(module, step)).collect::<Result<_, _>>()?;
        offsets.sort_unstable();
        let stepped = exits.iter().all(|&step| !matches!(self.steps[step].flow, Flow::Jump(_)));
        Ok((offsets, stepped))
    }

    fn exit_offset(&self, module: &ModuleFunctions, step: usize) -> Result<u64, UnknownExits> {
        let step = &self.steps[step];
        if !step.can_hold_probe {
            return Err(UnknownExits::NotProbeable);
        }
        module.elf().code_offset_of(step.address).ok_or(UnknownExits::Unreadable)
    }

    /// Returns and direct jumps out of the function, as indices of steps.
    fn direct_exits(&self, module: &ModuleFunctions, levels: &Levels) -> Result<Vec<usize>, UnknownExits> {
        let mut exits = Vec::new();
        for (index, step) in self.steps.iter().enumerate() {
            match step.flow {
                Flow::Return => exits.push(index),
                Flow::Call(Some(to)) if self.contains(to) && to != self.function.address => {
                    return Err(UnknownExits::CallInside);
                }
                Flow::Branch(to) if to == self.function.address => return Err(UnknownExits::LoopToEntry),
                Flow::Jump(to) if to == self.function.address => {
                    self.tail_call(levels, step)?;
                    exits.push(index);
                }
                Flow::Jump(to) | Flow::Branch(to) if self.contains(to) => {
                    self.step_at(to).ok_or(UnknownExits::JumpIntoInstruction)?;
                }
                Flow::Branch(to) if is_other_function(module, to) => {
                    return Err(UnknownExits::ConditionalTailCall);
                }
                Flow::Jump(to) if is_other_function(module, to) => {
                    self.tail_call(levels, step)?;
                    exits.push(index);
                }
                Flow::SlotJump => {
                    self.tail_call(levels, step)?;
                    exits.push(index);
                }
                Flow::Jump(_) | Flow::Branch(_) => return Err(UnknownExits::JumpElsewhere),
                _ => {}
            }
        }
        Ok(exits)
    }

    fn tail_call(&self, levels: &Levels, step: &Step) -> Result<(), UnknownExits> {
        if levels.at(step.address) == Some(false) { Err(UnknownExits::StackNotLevel) } else { Ok(()) }
    }

    /// For each instruction, whether control flow reaches it from the entry or from a landing pad.
    fn reached(&self) -> Result<Vec<bool>, UnknownExits> {
        let mut reached = vec![false; self.steps.len()];
        let mut open: Vec<usize> = self.step_at(self.function.address).into_iter().collect();
        for &pad in self.landing.iter().flatten() {
            if self.contains(pad) {
                open.push(self.step_at(pad).ok_or(UnknownExits::JumpIntoInstruction)?);
            }
        }
        while let Some(index) = open.pop() {
            if std::mem::replace(&mut reached[index], true) {
                continue;
            }
            let step = self.steps[index];
            if let Flow::Jump(to) | Flow::Branch(to) = step.flow {
                open.extend(self.step_at(to));
            }
            if matches!(step.flow, Flow::Next | Flow::Padding | Flow::Call(_) | Flow::Branch(_)) {
                match self.step_at(step.end()) {
                    Some(next) => open.push(next),
                    // A call as the last instruction calls a function that never returns.
                    None if matches!(step.flow, Flow::Call(_)) => {}
                    None => return Err(UnknownExits::FallsThrough),
                }
            }
        }
        Ok(reached)
    }

    /// Returns the indirect jumps that are exits. The result is an error if a jump may be an exit or not, or if some
    /// bytes stay unexplained.
    fn indirect_exits(&self, levels: &Levels, reached: &[bool]) -> Result<Vec<usize>, UnknownExits> {
        let all_reached =
            self.steps.iter().zip(reached).all(|(step, &reached)| reached || step.flow == Flow::Padding);
        let unknown: Vec<usize> =
            (0..self.steps.len()).filter(|&index| self.steps[index].flow == Flow::UnknownJump).collect();
        let table = self.steps.iter().any(|step| step.flow == Flow::TableJump);
        let level = |&index: &usize| levels.at(self.steps[index].address);
        if all_reached {
            // Every byte is reached, so there is no code inside the function to which an indirect jump could lead. So
            // the jump leaves the function, if the stack is level.
            return match unknown.iter().all(|index| level(index) == Some(true)) {
                true => Ok(unknown),
                false => Err(UnknownExits::IndirectJump),
            };
        }
        // While the frame is on the stack, a jump cannot be a tail call. So the jump leads to the unreached bytes.
        if !unknown.iter().all(|index| level(index) == Some(false)) {
            return Err(UnknownExits::IndirectJump);
        }
        // Unreadable landing pads or a jump table are enough to explain unreached bytes.
        if self.landing.is_none() || table || !unknown.is_empty() {
            Ok(Vec::new())
        } else {
            Err(UnknownExits::UnreachedBytes)
        }
    }
}

/// Whether a jump to the address enters another function at its start: at a function symbol or a linker stub.
fn is_other_function(module: &ModuleFunctions, address: u64) -> bool {
    match module.starting_at(address) {
        Some(index) => module.functions()[index].kind != FunctionKind::Cold,
        None => module.is_plt(address),
    }
}
