//! The reasons why functions are not probed, and the text for each.

use serde::{Deserialize, Serialize};

/// Why a function is not probed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SkipReason {
    /// Enough larger functions are chosen already: [`super::Selection::max_functions`] is the limit.
    BeyondLimit,
    /// No pattern of [`super::Selection::include`] matches the function.
    NotNamed,
    /// A pattern of [`super::Selection::exclude`] matches the function.
    Excluded,
    /// The symbol is another name of a function that is already counted.
    Alias,
    /// The function is an IFUNC resolver: the dynamic linker runs it before the program starts.
    IfuncResolver,
    /// The symbol is a part that the compiler split off another function (`.cold`, `.part`).
    Fragment,
    /// The function is a linker stub or start-up code.
    Startup,
    /// The function belongs to a compiler's runtime library.
    CompilerRuntime,
    /// The function belongs to Rust's standard library. Copies of its generic code in the program count, too.
    RustStandard,
    /// The symbol has no size, or the function is only a jump or a return.
    TooSmall,
    /// The kernel accepts no probe on the function's first instruction, or a loop jumps back to that instruction.
    NotProbeable,
    /// Neither an unwind entry nor a direct call proves that code starts at the symbol.
    Unproven,
    /// The function begins with an instruction that the kernel would replace by a call (see `probeable`), and no later
    /// place is suitable.
    Rewritten,
}

impl SkipReason {
    /// The reason in the form that follows a count: `12 aliases`.
    pub fn phrase(self) -> &'static str {
        match self {
            SkipReason::BeyondLimit => "smaller ones beyond --max-functions",
            SkipReason::NotNamed => "not named by --functions",
            SkipReason::Excluded => "excluded",
            SkipReason::Alias => "aliases",
            SkipReason::IfuncResolver => "resolvers of the dynamic linker",
            SkipReason::Fragment => "cold or outlined parts of others",
            SkipReason::Startup => "stubs and start-up code",
            SkipReason::CompilerRuntime => "of a compiler's runtime",
            SkipReason::RustStandard => "of the Rust standard library",
            SkipReason::TooSmall => "too small to measure",
            SkipReason::NotProbeable => "that cannot hold a probe",
            SkipReason::Unproven => "that may be no code",
            SkipReason::Rewritten => "that begin with a nop in which a probe would harm forked children",
        }
    }
}
