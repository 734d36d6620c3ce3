//! A function's instructions, reduced to what finding exits needs: where each instruction starts, and where control
//! goes after it.

use super::probeable::can_hold_probe;
use super::unknown_exits::UnknownExits;
use crate::elf::ElfFile;
use iced_x86::{
    Decoder, DecoderOptions, FlowControl, Instruction, InstructionInfoFactory, Mnemonic, OpAccess, OpKind,
    Register,
};

/// One instruction of a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// Address as linked.
    pub address: u64,
    /// Length, in bytes.
    pub len: u8,
    /// Where control goes after the instruction.
    pub flow: Flow,
    /// Whether the kernel lets a probe replace the instruction.
    pub can_hold_probe: bool,
}

/// Where control goes after an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    /// To the next instruction.
    Next,
    /// To the next instruction. This instruction does nothing or traps, so compilers also write it as padding, which
    /// control never reaches.
    Padding,
    /// To the next instruction, if the called function returns. The value is the function's address, if the instruction
    /// contains it.
    Call(Option<u64>),
    /// To the caller.
    Return,
    /// To this address.
    Jump(u64),
    /// To this address or to the next instruction.
    Branch(u64),
    /// Through a table of addresses inside the function.
    TableJump,
    /// Through a single memory slot at a fixed address (`jmp *f@GOTPCREL(%rip)`): to another function.
    SlotJump,
    /// To an address that the instruction does not show.
    UnknownJump,
    /// Nowhere: the instruction stops the thread (`ud2`, `hlt`).
    Stop,
}

impl Step {
    /// First address after the instruction.
    pub fn end(&self) -> u64 {
        self.address.wrapping_add(u64::from(self.len))
    }
}

/// Number of instructions before an indirect jump in which the use of a jump table is recognised.
const WINDOW: usize = 8;

/// Decodes all of `bytes` as instructions. If there is data among the instructions, no decoded address can be trusted,
/// so the result is an error. Signs of data are invalid or privileged instructions, zeros, and an instruction that ends
/// after the last byte: compilers write none of these.
pub fn decode(bytes: &[u8], address: u64) -> Result<Vec<Step>, UnknownExits> {
    let mut decoder = Decoder::with_ip(64, bytes, address, DecoderOptions::NONE);
    let mut steps = Vec::with_capacity(bytes.len() / 4);
    let mut window = [Instruction::default(); WINDOW];
    let mut instruction = Instruction::default();
    while decoder.can_decode() {
        let from = decoder.position();
        decoder.decode_out(&mut instruction);
        let Some(own) = bytes.get(from..decoder.position()).filter(|own| !own.is_empty()) else {
            return Err(UnknownExits::NotCode);
        };
        if instruction.is_invalid() || is_foreign(&instruction, own) {
            return Err(UnknownExits::NotCode);
        }
        let flow = flow(&instruction, &window);
        steps.push(Step {
            address: instruction.ip(),
            len: own.len() as u8,
            flow,
            can_hold_probe: can_hold_probe(&instruction, own),
        });
        window.rotate_left(1);
        window[WINDOW - 1] = instruction;
    }
    Ok(steps)
}

/// Reads a file's instructions one by one, beginning at an address.
pub struct Walker<'a> {
    elf: &'a ElfFile,
    address: u64,
    /// Bytes of the file that begin at the address `bytes_at`.
    bytes: Vec<u8>,
    bytes_at: u64,
    window: [Instruction; WINDOW],
}

impl<'a> Walker<'a> {
    /// A walker that begins at this address.
    pub fn new(elf: &'a ElfFile, address: u64) -> Walker<'a> {
        Walker {
            elf,
            address,
            bytes: Vec::new(),
            bytes_at: address,
            window: [Instruction::default(); WINDOW],
        }
    }

    /// The address of the next instruction.
    pub fn address(&self) -> u64 {
        self.address
    }

    /// The next instruction, and whether it writes the register of the first argument (`rdi`).
    pub fn step(&mut self) -> Result<(Step, bool), UnknownExits> {
        let instruction = self.instruction()?;
        let own = self.own_bytes(&instruction);
        if is_foreign(&instruction, own) {
            return Err(UnknownExits::NotCode);
        }
        let step = Step {
            address: instruction.ip(),
            len: own.len() as u8,
            flow: flow(&instruction, &self.window),
            can_hold_probe: can_hold_probe(&instruction, own),
        };
        let mut info = InstructionInfoFactory::new();
        let writes = info.info(&instruction).used_registers().iter().any(|used| {
            used.register().full_register() == Register::RDI
                && !matches!(used.access(), OpAccess::Read | OpAccess::CondRead)
        });
        self.window.rotate_left(1);
        self.window[WINDOW - 1] = instruction;
        Ok((step, writes))
    }

    /// The instruction that `step` returned last.
    pub fn last(&self) -> &Instruction {
        &self.window[WINDOW - 1]
    }

    /// Decodes and returns the next instruction, and moves past it.
    pub fn instruction(&mut self) -> Result<Instruction, UnknownExits> {
        const LONGEST: u64 = 15;
        const CHUNK: u64 = 256;
        let at = self.address.wrapping_sub(self.bytes_at);
        if at.saturating_add(LONGEST) > self.bytes.len() as u64 {
            let unreadable = UnknownExits::Unreadable;
            let offset = self.elf.code_offset_of(self.address).ok_or(unreadable)?;
            // Near the end of a segment there are fewer bytes to read.
            let read = |size| self.elf.read(offset, size, "a function", CHUNK).ok();
            let inside =
                |&size: &u64| self.elf.code_offset_of(self.address.saturating_add(size - 1)).is_some();
            let sizes = [CHUNK, 64, 16, 8, 4, 2, 1];
            self.bytes = sizes.into_iter().filter(inside).find_map(read).ok_or(unreadable)?;
            self.bytes_at = self.address;
        }
        let at = usize::try_from(self.address.wrapping_sub(self.bytes_at)).unwrap_or(usize::MAX);
        let bytes = self.bytes.get(at..).unwrap_or_default();
        let instruction = Decoder::with_ip(64, bytes, self.address, DecoderOptions::NONE).decode();
        if instruction.is_invalid() {
            return Err(UnknownExits::NotCode);
        }
        self.address = instruction.next_ip();
        Ok(instruction)
    }

    fn own_bytes(&self, instruction: &Instruction) -> &[u8] {
        let at = usize::try_from(instruction.ip().wrapping_sub(self.bytes_at)).unwrap_or(usize::MAX);
        self.bytes.get(at..).and_then(|bytes| bytes.get(..instruction.len())).unwrap_or_default()
    }
}

/// Whether the instruction is a valid encoding that compilers do not put into functions. Data often looks like such an
/// instruction.
fn is_foreign(instruction: &Instruction, bytes: &[u8]) -> bool {
    let far = matches!(
        instruction.mnemonic(),
        Mnemonic::Retf
            | Mnemonic::Iret
            | Mnemonic::Iretd
            | Mnemonic::Iretq
            | Mnemonic::Sysret
            | Mnemonic::Sysexit
    );
    let far_branch = (0..instruction.op_count())
        .any(|operand| matches!(instruction.op_kind(operand), OpKind::FarBranch16 | OpKind::FarBranch32));
    let privileged = instruction.is_privileged() && instruction.mnemonic() != Mnemonic::Hlt;
    let odd_interrupt = instruction.flow_control() == FlowControl::Interrupt
        && !matches!(instruction.mnemonic(), Mnemonic::Int3 | Mnemonic::Syscall);
    far || far_branch || privileged || odd_interrupt || bytes == [0, 0]
}

fn flow(instruction: &Instruction, window: &[Instruction; WINDOW]) -> Flow {
    match instruction.flow_control() {
        FlowControl::Return => Flow::Return,
        FlowControl::UnconditionalBranch => Flow::Jump(instruction.near_branch_target()),
        FlowControl::ConditionalBranch | FlowControl::XbeginXabortXend if has_target(instruction) => {
            Flow::Branch(instruction.near_branch_target())
        }
        FlowControl::Call => match has_target(instruction) {
            true => Flow::Call(Some(instruction.near_branch_target())),
            false => Flow::Next,
        },
        FlowControl::IndirectCall => Flow::Call(None),
        FlowControl::IndirectBranch => indirect(instruction, window),
        FlowControl::Exception => Flow::Stop,
        FlowControl::Interrupt if instruction.mnemonic() == Mnemonic::Int3 => Flow::Padding,
        _ if instruction.mnemonic() == Mnemonic::Hlt => Flow::Stop,
        _ if instruction.mnemonic() == Mnemonic::Nop => Flow::Padding,
        _ => Flow::Next,
    }
}

fn has_target(instruction: &Instruction) -> bool {
    matches!(instruction.op0_kind(), OpKind::NearBranch16 | OpKind::NearBranch32 | OpKind::NearBranch64)
}

fn indirect(jump: &Instruction, window: &[Instruction; WINDOW]) -> Flow {
    // `notrack` allows a target that does not start with `endbr64`. Compilers use this prefix only for jump tables.
    if jump.segment_prefix() == Register::DS {
        return Flow::TableJump;
    }
    if jump.op0_kind() == OpKind::Memory {
        let slot = jump.is_ip_rel_memory_operand()
            || (jump.memory_base() == Register::None && jump.memory_index() == Register::None);
        return if slot && jump.segment_prefix() == Register::None {
            Flow::SlotJump
        } else {
            Flow::UnknownJump
        };
    }
    if is_relative_table(jump.op0_register(), window) { Flow::TableJump } else { Flow::UnknownJump }
}

/// Recognises `movslq (base,index,4),r; add base,r; jmp *r`, a jump through a table whose entries are distances from
/// the table's start. Compilers write these instructions for a `switch` in position-independent code and for nothing
/// else.
fn is_relative_table(target: Register, window: &[Instruction; WINDOW]) -> bool {
    let mut recent = window.iter().rev().take_while(|instruction| {
        matches!(instruction.flow_control(), FlowControl::Next) && !instruction.is_invalid()
    });
    let written = |instruction: &&Instruction| {
        instruction.op_count() > 0
            && instruction.op0_kind() == OpKind::Register
            && instruction.op0_register().full_register() == target.full_register()
    };
    let Some(sum) = recent.find(written) else { return false };
    if sum.mnemonic() != Mnemonic::Add || sum.op1_kind() != OpKind::Register {
        return false;
    }
    let parts = [sum.op0_register(), sum.op1_register()];
    recent.any(|load| {
        load.mnemonic() == Mnemonic::Movsxd
            && load.op1_kind() == OpKind::Memory
            && load.memory_index() != Register::None
            && load.memory_index_scale() == 4
            && parts.contains(&load.op0_register())
    })
}
