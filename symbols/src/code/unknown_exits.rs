//! The reasons why the exits of a function are not known.

use serde::{Deserialize, Serialize};
use std::fmt;

/// Why the exits of a function are not known with certainty.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum UnknownExits {
    /// Go programs move stacks in memory, so a stack pointer does not identify a frame.
    Go,
    /// The code is not x86-64.
    Architecture,
    /// The symbol gives no size.
    NoSize,
    /// The function is too large to be decoded.
    TooLarge,
    /// The function's bytes cannot be read, or lie beyond its section.
    Unreadable,
    /// Another function symbol lies inside the function.
    Overlap,
    /// The function contains bytes that are not instructions of compiled code.
    NotCode,
    /// A jump leads into the middle of an instruction.
    JumpIntoInstruction,
    /// A jump leads to a place where no function starts.
    JumpElsewhere,
    /// A conditional jump leaves the function. A probe there would also fire when the jump is not taken.
    ConditionalTailCall,
    /// A conditional jump leads to the function's first instruction. The entry probe would count this jump as a call.
    LoopToEntry,
    /// The function calls into its own middle or into its `.cold` part.
    CallInside,
    /// Some of the function's bytes are reached by no jump that longpole understands.
    UnreachedBytes,
    /// An indirect jump may stay inside the function or leave it.
    IndirectJump,
    /// At a jump to another function, the unwind tables give another stack height than at the entry.
    StackNotLevel,
    /// Control runs on into the next function.
    FallsThrough,
    /// The kernel accepts no probe on one of the function's exits.
    NotProbeable,
}

impl fmt::Display for UnknownExits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            UnknownExits::Go => "Go moves stacks",
            UnknownExits::Architecture => "not x86-64 code",
            UnknownExits::NoSize => "no size in the symbol table",
            UnknownExits::TooLarge => "too large to decode",
            UnknownExits::Unreadable => "its bytes cannot be read",
            UnknownExits::Overlap => "another function starts inside it",
            UnknownExits::NotCode => "data among its instructions",
            UnknownExits::JumpIntoInstruction => "a jump into the middle of an instruction",
            UnknownExits::JumpElsewhere => "a jump to a place that is no function's start",
            UnknownExits::ConditionalTailCall => "a conditional jump to another function",
            UnknownExits::LoopToEntry => "a loop back to its first instruction",
            UnknownExits::CallInside => "a call into its own middle",
            UnknownExits::UnreachedBytes => "bytes that no understood jump reaches",
            UnknownExits::IndirectJump => "an indirect jump that may leave it or not",
            UnknownExits::StackNotLevel => "a jump to another function with the stack not as at the entry",
            UnknownExits::FallsThrough => "it runs on into the next function",
            UnknownExits::NotProbeable => "an exit that the kernel does not probe",
        })
    }
}
