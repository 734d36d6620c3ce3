//! The answer to what is at an address of a binary, serializable.

use serde::{Deserialize, Serialize};
use std::fmt;

/// A place in a binary.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Place {
    /// Offset in the file, as probes and /proc maps count.
    FileOffset(u64),
    /// Address as linked, as `nm` and `addr2line` count.
    Address(u64),
}

/// The function, lines and inlined calls at a place of a binary.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Location {
    /// The function's name, or `module+0xoffset`. Never guessed.
    pub name: String,
    /// The symbol that holds the place.
    pub symbol: Result<SymbolHit, Reason>,
    /// Functions inlined there, innermost first; the last one is the function itself.
    pub frames: Result<Vec<Frame>, Reason>,
    /// The place lies in a loop that only waits.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub waits: bool,
    /// That loop tries to take a lock, and keeps the CPU.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub tries: bool,
}

/// A symbol that holds a place.
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
    /// Column, from 1; 0 stands for the start of the line.
    pub column: Option<u32>,
}

/// Why a part of the answer about a place is not known.
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
    /// The debug information lies in other files (`-gsplit-dwarf`), which are not there.
    SplitDebugInformation,
    /// The debug information has no line for this place.
    NoLineForAddress,
    /// The debug information contradicts itself.
    BadDebugInformation,
    /// The debug information is larger than longpole reads.
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
    /// `file:line` in the function itself, not in a function inlined there.
    pub fn line(&self) -> Option<String> {
        let frame = self.frames.as_ref().ok()?.last()?;
        Some(format!("{}:{}", frame.file.as_deref()?, frame.line?))
    }
}
