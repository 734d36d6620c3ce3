//! Follows register values within a loop, for [`super::wait_loops`]. A value is the same in each iteration, was read
//! from memory at a fixed place, or was made in earlier iterations.

use super::memory_access::{does_read, does_write};
use iced_x86::{
    ConditionCode, FlowControl, Instruction, InstructionInfo, InstructionInfoFactory, Mnemonic, OpAccess,
    OpKind, Register,
};
use rustc_hash::FxHashMap;

/// Number of the general registers and the flags, which count as one more register.
const REGISTERS: usize = 17;
const FLAGS: usize = 16;
/// Registers that a call may change (System V ABI).
const CALLEES: [Register; 9] = [
    Register::RAX,
    Register::RCX,
    Register::RDX,
    Register::RSI,
    Register::RDI,
    Register::R8,
    Register::R9,
    Register::R10,
    Register::R11,
];

/// What a register's value depends on. Where two paths meet, the greater variant wins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Value {
    /// The value is the same in each iteration.
    Same,
    /// Computed from memory whose address is the same in each iteration.
    Read,
    /// Computed in earlier iterations.
    Carried,
}

/// Whether values changed where two paths met.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Turn {
    /// Some have.
    Changed,
    /// None has.
    Settled,
}

/// The values of all registers before one instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Values([Value; REGISTERS]);

/// The values of all registers at each instruction of a loop.
pub(super) struct Kept {
    head: Values,
    /// The values before each instruction that was reached.
    before: FxHashMap<usize, Values>,
    may_count: bool,
    factory: InstructionInfoFactory,
}

impl Kept {
    /// The values at the first instruction of a loop. Registers that an instruction of the loop writes are carried from
    /// iteration to iteration. `may_count` allows the loop to count iterations. `None` if an instruction does more than
    /// wait.
    pub(super) fn at_head<'a>(
        instructions: impl Iterator<Item = &'a Instruction>,
        may_count: bool,
    ) -> Option<Kept> {
        let mut factory = InstructionInfoFactory::new();
        let mut head = [Value::Same; REGISTERS];
        head[FLAGS] = Value::Carried;
        for instruction in instructions {
            if is_call(instruction) {
                CALLEES
                    .iter()
                    .filter_map(|register| place(*register))
                    .for_each(|at| head[at] = Value::Carried);
                continue;
            }
            let info = factory.info(instruction);
            if is_foreign(instruction, info) {
                return None;
            }
            for used in info.used_registers().iter().filter(|used| does_write(used.access())) {
                place(used.register()).into_iter().for_each(|at| head[at] = Value::Carried);
            }
        }
        Some(Kept { head: Values(head), before: FxHashMap::default(), may_count, factory })
    }

    /// The values after an instruction; `None` if the instruction does more than wait.
    pub(super) fn step(&mut self, node: usize, head: usize, instruction: &Instruction) -> Option<Values> {
        if node == head {
            self.before.insert(node, self.head);
        }
        let mut values = *self.before.get(&node)?;
        if is_call(instruction) {
            CALLEES
                .iter()
                .filter_map(|register| place(*register))
                .for_each(|at| values.0[at] = Value::Carried);
            values.0[FLAGS] = Value::Carried;
            return Some(values);
        }
        if is_zero(instruction) {
            values.set(instruction.op0_register(), Value::Same);
            values.0[FLAGS] = Value::Same;
            return Some(values);
        }
        let info = self.factory.info(instruction);
        let is_fixed =
            |register: Register| register == Register::None || values.get(register) < Value::Carried;
        if !info.used_memory().iter().all(|memory| is_fixed(memory.base()) && is_fixed(memory.index())) {
            return None;
        }
        if info.used_memory().iter().any(|memory| does_write(memory.access())) && !values.tries(instruction) {
            return None;
        }
        let result = values.result(instruction, info);
        if result == Value::Carried && !(self.may_count && values.counts(instruction)) {
            return None;
        }
        for used in info.used_registers().iter().filter(|used| does_write(used.access())) {
            // Compilers that write a part of a register never use its other part afterwards.
            let keeps = used.access() == OpAccess::CondWrite;
            let old = if keeps { values.get(used.register()) } else { Value::Same };
            values.set(used.register(), result.max(old));
        }
        if instruction.rflags_modified() != 0 {
            values.0[FLAGS] = if is_locked(instruction) { Value::Read } else { result };
        }
        Some(values)
    }

    /// Merges the values before an instruction on one path into those of other paths.
    pub(super) fn join(&mut self, node: usize, values: &Values) -> Turn {
        let Some(known) = self.before.get_mut(&node) else {
            self.before.insert(node, *values);
            return Turn::Changed;
        };
        let was = *known;
        for (known, value) in known.0.iter_mut().zip(values.0) {
            *known = (*known).max(value);
        }
        if *known == was { Turn::Settled } else { Turn::Changed }
    }

    /// Whether a branch depends on memory read in this iteration.
    pub(super) fn branches_on_memory(&self, node: usize) -> bool {
        self.before.get(&node).is_some_and(|values| values.0[FLAGS] == Value::Read)
    }
}

impl Values {
    fn get(&self, register: Register) -> Value {
        place(register).map_or(Value::Same, |at| self.0[at])
    }

    fn set(&mut self, register: Register, value: Value) {
        place(register).into_iter().for_each(|at| self.0[at] = value);
    }

    /// The value that an instruction computes from its operands.
    fn result(&self, instruction: &Instruction, info: &InstructionInfo) -> Value {
        let mut result = Value::Same;
        if info.used_memory().iter().any(|memory| does_read(memory.access())) {
            result = Value::Read;
        }
        let addresses: Vec<Register> =
            info.used_memory().iter().flat_map(|memory| [memory.base(), memory.index()]).collect();
        let is_address = |register: Register| {
            instruction.mnemonic() != Mnemonic::Lea
                && addresses.contains(&register)
                && !(0..instruction.op_count()).any(|at| {
                    instruction.op_kind(at) == OpKind::Register && instruction.op_register(at) == register
                })
        };
        for used in info.used_registers().iter().filter(|used| does_read(used.access())) {
            // `tries` checks the values that a locked attempt compares and writes. The result of the attempt is the old
            // value in memory.
            if !is_address(used.register()) && !is_locked(instruction) {
                result = result.max(self.get(used.register()));
            }
        }
        if instruction.rflags_read() != 0 {
            result = result.max(self.0[FLAGS]);
        }
        result
    }

    /// Whether an instruction that writes memory only tries to take a lock.
    fn tries(&self, instruction: &Instruction) -> bool {
        let is_same = |operand: u32| {
            instruction.op_kind(operand) != OpKind::Register
                || self.get(instruction.op_register(operand)) == Value::Same
        };
        // If the address itself was read from memory, the loop works on a list or a queue.
        let place = [instruction.memory_base(), instruction.memory_index()];
        if place.into_iter().any(|register| register != Register::None && self.get(register) != Value::Same) {
            return false;
        }
        match instruction.mnemonic() {
            Mnemonic::Xchg => is_same(0) && is_same(1),
            Mnemonic::Bts => instruction.has_lock_prefix() && is_same(1),
            Mnemonic::Cmpxchg => {
                instruction.has_lock_prefix() && self.get(Register::RAX) == Value::Same && is_same(1)
            }
            _ => false,
        }
    }

    /// Whether an instruction whose operand is carried only counts, moves or compares.
    fn counts(&self, instruction: &Instruction) -> bool {
        let is_fixed = |operand: u32| match instruction.op_kind(operand) {
            OpKind::Register => self.get(instruction.op_register(operand)) == Value::Same,
            kind => kind != OpKind::Memory,
        };
        match instruction.mnemonic() {
            Mnemonic::Mov | Mnemonic::Movzx | Mnemonic::Movsx | Mnemonic::Movsxd => true,
            Mnemonic::Cmp | Mnemonic::Test | Mnemonic::Inc | Mnemonic::Dec | Mnemonic::Lea => true,
            Mnemonic::Cwde | Mnemonic::Cdqe | Mnemonic::Neg | Mnemonic::Not => true,
            Mnemonic::Rdtsc | Mnemonic::Rdtscp => true,
            // Adding a register to itself doubles it, like a shift by one.
            Mnemonic::Add => is_fixed(1) || instruction.op0_register() == instruction.op1_register(),
            Mnemonic::Sub | Mnemonic::Shl | Mnemonic::Shr | Mnemonic::Sar => is_fixed(1),
            Mnemonic::And | Mnemonic::Or => is_fixed(1),
            // Branches, `cmovCC` and `setCC`, which compare a count with its bound.
            _ => instruction.condition_code() != ConditionCode::None,
        }
    }
}

/// `xor r, r` or `sub r, r`: the result is zero.
fn is_zero(instruction: &Instruction) -> bool {
    matches!(instruction.mnemonic(), Mnemonic::Xor | Mnemonic::Sub)
        && instruction.op0_kind() == OpKind::Register
        && instruction.op1_kind() == OpKind::Register
        && instruction.op0_register() == instruction.op1_register()
}

pub(super) fn is_call(instruction: &Instruction) -> bool {
    matches!(instruction.flow_control(), FlowControl::Call | FlowControl::IndirectCall)
}

/// Whether the instruction is an atomic change of memory.
pub(super) fn is_locked(instruction: &Instruction) -> bool {
    let is_memory = |operand: u32| instruction.op_kind(operand) == OpKind::Memory;
    instruction.has_lock_prefix()
        || instruction.mnemonic() == Mnemonic::Xchg && (is_memory(0) || is_memory(1))
}

/// Whether an instruction belongs in no waiting loop: vectors, strings, the stack, system calls, jumps through
/// registers.
fn is_foreign(instruction: &Instruction, info: &InstructionInfo) -> bool {
    let is_known =
        |register: Register| register.is_gpr() || register.is_segment_register() || register == Register::RIP;
    instruction.is_string_instruction()
        || instruction.is_stack_instruction()
        || instruction.is_privileged()
        || matches!(
            instruction.flow_control(),
            FlowControl::IndirectBranch | FlowControl::Interrupt | FlowControl::XbeginXabortXend
        )
        || matches!(instruction.mnemonic(), Mnemonic::Syscall | Mnemonic::Sysenter)
        || !info.used_registers().iter().all(|used| is_known(used.register()))
}

/// Whether an instruction belongs in no waiting loop: `is_foreign`, or a store that does not try to take a lock.
pub(super) fn does_more(instruction: &Instruction, info: &InstructionInfo) -> bool {
    let may_try = match instruction.mnemonic() {
        Mnemonic::Xchg => true,
        Mnemonic::Bts | Mnemonic::Cmpxchg => instruction.has_lock_prefix(),
        _ => false,
    };
    is_foreign(instruction, info)
        || !may_try && info.used_memory().iter().any(|memory| does_write(memory.access()))
}

/// Index of a register in [`Values`].
fn place(register: Register) -> Option<usize> {
    let full = register.full_register();
    full.is_gpr64().then(|| full.number())
}
