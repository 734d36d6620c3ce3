//! What longpole and a parser say to each other: questions about one binary, answers, and files that the parser asks for.

use super::answer::{Place, Reason};
use super::build_id::BuildId;
use super::choose::{Choice, Selection};
use super::error::FailureKind;
use super::files::FileRequest;
use super::functions::{ModuleFunctions, SymbolSource};
use super::libc_answer::LibcAnswer;
use super::located::Located;
use super::lock_regions::{LockCall, LockRegions};
use super::moves_code::{MovesCode, moves_code};
use super::packed;
use super::unwind_rows::RowsTold;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// Largest message to a parser: a million places.
pub const MOST_ASKED: usize = 64 << 20;
/// Largest message from a parser.
pub const MOST_ANSWERED: usize = 512 << 20;

/// To the parser.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToParser {
    /// The binary comes with this message.
    Binary {
        /// What messages call it.
        #[serde(with = "crate::path_bytes")]
        path: PathBuf,
        /// What people call it.
        name: String,
    },
    /// A file to look at comes with this message: the only question, and no further file is needed.
    Look {
        /// What messages call it.
        #[serde(with = "crate::path_bytes")]
        path: PathBuf,
        /// What for.
        look: Look,
    },
    /// A question.
    Question(Question),
    /// The file that was asked for comes with this message.
    File {
        /// Where it lies.
        #[serde(with = "crate::path_bytes")]
        path: PathBuf,
        /// See [`super::Candidate::next`].
        next: u32,
    },
    /// There is no such file.
    NoFile,
}

/// What to look for in a file, without reading its symbols as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Look {
    /// Synchronization functions of a C library.
    LibcFunctions,
    /// How to find callers.
    UnwindRows,
    /// Whether a library moves code.
    MovesCode,
}

/// A question about the binary.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Question {
    /// What there is to know its functions by.
    Summary,
    /// Which functions to probe, with their lines.
    Choose(Selection),
    /// What lies at these places.
    Locate(#[serde(with = "packed")] Vec<Place>),
    /// The variable at each of these linked addresses.
    Variables(Vec<u64>),
    /// Which of these places (file offsets) come after which calls that take locks.
    LockRegions {
        /// The calls.
        calls: Vec<LockCall>,
        /// The places.
        places: Vec<u64>,
    },
}

/// From the parser.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FromParser {
    /// It needs a file.
    Want {
        /// Which one.
        request: FileRequest,
        /// See [`super::Files::open`].
        from: u32,
    },
    /// The binary has been read: questions may come.
    Ready,
    /// The answer.
    Summary(Box<Summary>),
    /// The answer.
    Choice(Box<Choice>),
    /// The answer.
    Located(Box<Located>),
    /// The answer.
    Variables(Vec<Option<String>>),
    /// The answer.
    LockRegions(LockRegions),
    /// The answer.
    LibcFunctions(Box<LibcAnswer>),
    /// The answer, with a file of all rows; `None`: it has no tables, and nothing comes with it.
    UnwindRows(Option<Box<RowsTold>>),
    /// The answer.
    MovesCode(bool),
    /// The binary cannot be used.
    Failed {
        /// What kind of failure.
        kind: FailureKind,
        /// One line.
        text: String,
    },
}

/// What a binary's functions are known by.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Summary {
    /// What people call the binary.
    pub module: String,
    /// Its build-id.
    pub build_id: Option<BuildId>,
    /// Where function names come from.
    pub source: SymbolSource,
    /// Function symbols.
    pub functions: usize,
    /// Whether Go built it.
    pub is_go: bool,
    /// Whether Rust's standard library is in it.
    pub is_rust: bool,
    /// Whether it may copy or move its own instructions.
    pub moves_code: MovesCode,
    /// Why there are no lines and inline chains; `None` if there are.
    pub no_lines: Option<Reason>,
    /// Debug files that are not the binary's: one sentence each.
    pub refused: Vec<String>,
    /// Whether what its debug file has in common with others is missing.
    pub supplement_missing: bool,
}

impl Summary {
    /// Of a module that is read.
    pub fn of(module: &ModuleFunctions, no_lines: Option<Reason>, supplement_missing: bool) -> Summary {
        Summary {
            module: module.module().to_owned(),
            build_id: module.build_id().cloned(),
            source: module.source().clone(),
            functions: module.functions().len(),
            is_go: module.is_go(),
            is_rust: module.is_rust(),
            moves_code: moves_code(module.elf(), module.is_rust()),
            no_lines: if module.go().is_some() { None } else { no_lines },
            refused: module.refused().to_vec(),
            supplement_missing,
        }
    }
}
