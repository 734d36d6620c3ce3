//! Why functions are not probed, and how that is said.

use serde::{Deserialize, Serialize};

/// Why a function is not probed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LeftOut {
    /// Beyond [`super::Selection::max_functions`].
    BeyondLimit,
    /// No pattern of [`super::Selection::include`] names it.
    NotNamed,
    /// A pattern of [`super::Selection::exclude`] names it.
    Excluded,
    /// Another name of a function that is counted already.
    Alias,
    /// Runs in the dynamic linker.
    IfuncResolver,
    /// `.cold` and `.part` pieces of other functions.
    Fragment,
    /// Linker stubs and start-up code.
    Startup,
    /// A compiler's runtime library.
    CompilerRuntime,
    /// Rust's standard library, its generic code included.
    RustStandard,
    /// No size, or nothing but a jump or a return.
    TooSmall,
    /// The kernel takes no probe on its first instruction, or its first instruction is the head of a loop.
    NotProbeable,
    /// Neither an unwind entry nor a direct call says that code starts there.
    Unproven,
    /// It begins with an instruction that the kernel would make a call of (see `probeable`), and no other place will do.
    Rewritten,
}

impl LeftOut {
    /// What follows a count: `12 aliases`.
    pub fn phrase(self) -> &'static str {
        match self {
            LeftOut::BeyondLimit => "smaller ones beyond --max-functions",
            LeftOut::NotNamed => "not named by --functions",
            LeftOut::Excluded => "excluded",
            LeftOut::Alias => "aliases",
            LeftOut::IfuncResolver => "resolvers of the dynamic linker",
            LeftOut::Fragment => "cold or outlined parts of others",
            LeftOut::Startup => "stubs and start-up code",
            LeftOut::CompilerRuntime => "of a compiler's runtime",
            LeftOut::RustStandard => "of the Rust standard library",
            LeftOut::TooSmall => "too small to measure",
            LeftOut::NotProbeable => "that cannot hold a probe",
            LeftOut::Unproven => "that may be no code",
            LeftOut::Rewritten => "that begin with a nop in which a probe would harm forked children",
        }
    }
}
