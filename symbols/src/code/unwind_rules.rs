//! Makes a rule of a row of DWARF's unwind tables, for the stack pointer and the frame pointer. Compilers use only a
//! few forms.

use super::unwind_rows::{FrameAt, NO_RULE, Rule, Saved};
use gimli::{
    CfaRule, EhFrame, EndianSlice, FrameDescriptionEntry, LittleEndian, Operation, Register, RegisterRule,
    UnwindContextStorage, UnwindExpression, UnwindTableRow,
};
use rustc_hash::FxHashMap;

type Bytes<'a> = EndianSlice<'a, LittleEndian>;

/// Storage for rows of 32 registers. On x86-64, compilers describe 17 registers, because vector registers are never
/// saved. gimli's own rows have room for 192 registers and are copied for each function, which takes longer. An entry
/// with more registers than 32 counts as unreadable.
pub struct FewRegisters;

impl UnwindContextStorage<usize> for FewRegisters {
    type Rules = [(Register, RegisterRule<usize>); 32];
    type Stack = Box<[UnwindTableRow<usize, FewRegisters>; 4]>;
}

/// DWARF's numbers (System V ABI for AMD64, figure 3.36).
const FRAME_POINTER: Register = Register(6);
const STACK_POINTER: Register = Register(7);
const RETURN_ADDRESS: Register = Register(16);
/// Largest number of operations that are read of an expression. The longest known form has 9.
const MOST_OPERATIONS: usize = 10;

impl Rule {
    /// The rule for code whose caller cannot be found from the stack pointer and the frame pointer.
    pub const UNKNOWN: Rule =
        Rule { frame: FrameAt::Unknown, pointer: Saved::Lost, back: Saved::Lost, is_signal: false };
}

/// A list of rules in which no rule appears twice.
#[derive(Default)]
pub struct Rules {
    numbers: FxHashMap<Rule, u16>,
    /// The rules, by number.
    pub list: Vec<Rule>,
}

impl Rules {
    /// The number of a rule. A new rule is added to the list. `NO_RULE` if all numbers are in use.
    pub fn number(&mut self, rule: Rule) -> u16 {
        if let Some(&number) = self.numbers.get(&rule) {
            return number;
        }
        match u16::try_from(self.list.len()) {
            Ok(number) if number < NO_RULE => {
                self.list.push(rule);
                self.numbers.insert(rule, number);
                number
            }
            _ => NO_RULE,
        }
    }
}

/// Makes the rule of a row.
pub fn rule(
    row: &UnwindTableRow<usize, FewRegisters>,
    section: &EhFrame<Bytes<'_>>,
    entry: &FrameDescriptionEntry<Bytes<'_>>,
) -> Rule {
    let operations = |expression: &UnwindExpression<usize>| -> Vec<Operation<Bytes<'_>>> {
        let Ok(expression) = expression.get(section) else { return Vec::new() };
        let mut operations = expression.operations(entry.cie().encoding());
        let mut list = Vec::new();
        while let Ok(Some(operation)) = operations.next() {
            list.push(operation);
            if list.len() > MOST_OPERATIONS {
                break;
            }
        }
        list
    };
    let frame = match row.cfa() {
        CfaRule::RegisterAndOffset { register, offset } => match (*register, i32::try_from(*offset)) {
            (STACK_POINTER, Ok(offset)) => FrameAt::Stack(offset),
            (FRAME_POINTER, Ok(offset)) => FrameAt::Pointer(offset),
            _ => FrameAt::Unknown,
        },
        CfaRule::Expression(expression) => frame_by(&operations(expression)),
    };
    let saved = |rule: RegisterRule<usize>| match rule {
        RegisterRule::SameValue => Some(Saved::Same),
        RegisterRule::Offset(offset) => Some(Saved::Frame(i32::try_from(offset).ok()?)),
        RegisterRule::Expression(expression) => match operations(&expression)[..] {
            [Operation::RegisterOffset { register, offset, .. }] => match (register, i32::try_from(offset)) {
                (STACK_POINTER, Ok(offset)) => Some(Saved::Stack(offset)),
                (FRAME_POINTER, Ok(offset)) => Some(Saved::Pointer(offset)),
                _ => None,
            },
            _ => None,
        },
        RegisterRule::Register(Register(number)) => Some(Saved::Register(u8::try_from(number).ok()?)),
        _ => None,
    };
    let pointer = row.register(FRAME_POINTER).map_or(Some(Saved::Same), saved).unwrap_or(Saved::Lost);
    let back = match row.register(RETURN_ADDRESS) {
        Some(RegisterRule::Undefined) => Some(Saved::Lost),
        Some(rule) => saved(rule).filter(|saved| *saved != Saved::Same),
        None => None,
    };
    match back {
        Some(back) if entry.cie().return_address_register() == RETURN_ADDRESS => {
            Rule { frame, pointer, back, is_signal: entry.is_signal_trampoline() }
        }
        // The function has a caller, but this kind of rule cannot describe how to find it.
        _ => Rule { frame: FrameAt::Unknown, ..Rule::UNKNOWN },
    }
}

fn frame_by(operations: &[Operation<Bytes<'_>>]) -> FrameAt {
    use Operation::{And, Deref, Ge, Plus, RegisterOffset, Shl, UnsignedConstant};
    match operations {
        [RegisterOffset { register, offset, .. }, Deref { size: 8, space: false, .. }] => {
            match (*register, i32::try_from(*offset)) {
                (STACK_POINTER, Ok(offset)) => FrameAt::InStack(offset),
                (FRAME_POINTER, Ok(offset)) => FrameAt::InPointer(offset),
                _ => FrameAt::Unknown,
            }
        }
        // The expression that linkers write for `.plt`: the second instruction of each stub pushes a number, so the
        // stack grows there.
        [
            RegisterOffset { register: STACK_POINTER, offset: 8, .. },
            RegisterOffset { register: RETURN_ADDRESS, offset: 0, .. },
            UnsignedConstant { value: 15 },
            And,
            UnsignedConstant { value: from },
            Ge,
            UnsignedConstant { value: 3 },
            Shl,
            Plus,
        ] => u8::try_from(*from).map_or(FrameAt::Unknown, FrameAt::Calls),
        _ => FrameAt::Unknown,
    }
}
