//! The answer to the question which function and source line is at an address of a binary. The types can be serialized.

use serde::{Deserialize, Serialize};
use std::fmt;

/// A place in a binary.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Place {
    /// An offset in the file, as probes and `/proc/PID/maps` give it.
    FileOffset(u64),
    /// An address as the linker assigned it, as `nm` and `addr2line` print it.
    Address(u64),
}

/// The function, lines and inlined calls at a place of a binary.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Location {
    /// The function's name, or `module+0xoffset` if no symbol is known. The name is never a guess.
    pub name: String,
    /// The symbol whose range contains the place.
    pub symbol: Result<SymbolHit, Reason>,
    /// The functions inlined at the place, innermost first; the last frame is the function itself.
    pub frames: Result<Vec<Frame>, Reason>,
    /// Whether the place lies in a loop that only waits ([`crate::wait_loops`] defines such loops).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub waits: bool,
    /// Whether the loop at the place tries to take a lock and keeps its CPU meanwhile, as a spin lock does.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub tries: bool,
}

/// The symbol whose range contains a place.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SymbolHit {
    /// Readable name.
    pub name: String,
    /// Distance of the address from the symbol's start, bytes.
    pub distance: u64,
}

/// A function at a source line.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Frame {
    /// Readable name.
    pub function: Option<String>,
    /// Source file.
    pub file: Option<String>,
    /// Line, from 1.
    pub line: Option<u32>,
    /// Column, from 1; 0 means the start of the line.
    pub column: Option<u32>,
}

/// Why a part of a [`Location`] is not known.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// The binary has no code at this place.
    NotCode,
    /// The binary is stripped.
    NoSymbols,
    /// No symbol holds this place.
    NoSymbolForAddress,
    /// Neither the binary nor a separate debug file has debug information.
    NoDebugInformation,
    /// The debug information is in other files (`-gsplit-dwarf`), and these files are missing.
    SplitDebugInformation,
    /// The debug information has no line for this place.
    NoLineForAddress,
    /// The debug information contradicts itself.
    BadDebugInformation,
    /// The debug information is larger than longpole's limit.
    TooLarge,
}

impl From<gimli::Error> for Reason {
    fn from(_: gimli::Error) -> Reason {
        Reason::BadDebugInformation
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reason::NotCode => f.write_str("the file has no code there"),
            Reason::NoSymbols => f.write_str("stripped: it has no symbols"),
            Reason::NoSymbolForAddress => f.write_str("no symbol holds this address"),
            Reason::NoDebugInformation => f.write_str("no debug information: compile with -g"),
            Reason::SplitDebugInformation => f.write_str(
                "its debug information is split off (-gsplit-dwarf), and the .dwo or .dwp file is not there",
            ),
            Reason::NoLineForAddress => f.write_str("its debug information does not cover this address"),
            Reason::BadDebugInformation => f.write_str("its debug information contradicts itself"),
            Reason::TooLarge => f.write_str("its debug information is too large"),
        }
    }
}

impl Location {
    /// `file:line` in the function itself, even if the place belongs to a function inlined there.
    pub fn line(&self) -> Option<String> {
        let frame = self.frames.as_ref().ok()?.last()?;
        Some(format!("{}:{}", frame.file.as_deref()?, frame.line?))
    }
}
