//! The messages between longpole and a parser: questions about one binary, answers, and the parser's requests for
//! files.

use crate::answer::{Place, Reason};
use crate::choice::{Choice, MovesCode, Selection, moves_code};
use crate::code::{LockCall, LockRegions, RowsTold};
use crate::elf::{BuildId, FileRequest, ModuleFunctions, SymbolSource};
use crate::error::FailureKind;
use crate::libc::LibcAnswer;
use crate::places::{GoRuntime, Located, packed};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// Largest message to a parser, in bytes: enough for a million places.
pub const MOST_ASKED: usize = 64 << 20;
/// Largest message from a parser, in bytes.
pub const MOST_ANSWERED: usize = 512 << 20;

/// A message to the parser.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToParser {
    /// The binary to read. The open file is sent with the message.
    Binary {
        /// The binary's path in messages.
        #[serde(with = "super::path_bytes")]
        path: PathBuf,
        /// The binary's name in messages.
        name: String,
    },
    /// A file, and one question that needs no other file. The open file is sent with the message.
    Look {
        /// The file's path in messages.
        #[serde(with = "super::path_bytes")]
        path: PathBuf,
        /// The question.
        look: Look,
    },
    /// A question.
    Question(Question),
    /// A requested file. The open file is sent with the message.
    File {
        /// The file's path.
        #[serde(with = "super::path_bytes")]
        path: PathBuf,
        /// See [`crate::Candidate::next`].
        next: u32,
    },
    /// The requested file does not exist.
    NoFile,
}

/// A question about one file that needs only a part of the file's symbols.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Look {
    /// The synchronization functions of a C library.
    LibcFunctions,
    /// The unwind rows, which show how to find a function's caller.
    UnwindRows,
    /// Whether a library makes memory executable.
    MovesCode,
    /// Where Go's runtime keeps its goroutines.
    GoRuntime,
}

/// A question about the binary.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Question {
    /// Which symbols and debug information does the binary have?
    Summary,
    /// Which functions should get probes, and what are their lines?
    Choose(Selection),
    /// What are the locations of these places?
    Locate(#[serde(with = "packed")] Vec<Place>),
    /// Which variable is at each of these linked addresses?
    Variables(Vec<u64>),
    /// Which of these places (file offsets) does a thread reach only while it holds the lock that a call takes? There
    /// is one answer for each call.
    LockRegions {
        /// The calls.
        calls: Vec<LockCall>,
        /// The places.
        places: Vec<u64>,
    },
}

/// A message from the parser.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FromParser {
    /// The parser asks for a file.
    Want {
        /// The file that the parser needs.
        request: FileRequest,
        /// See [`crate::Files::open`].
        from: u32,
    },
    /// The binary has been read; questions may follow.
    Ready,
    /// The answer to [`Question::Summary`].
    Summary(Box<SymbolSummary>),
    /// The answer to [`Question::Choose`].
    Choice(Box<Choice>),
    /// The answer to [`Question::Locate`].
    Located(Box<Located>),
    /// The answer to [`Question::Variables`].
    Variables(Vec<Option<String>>),
    /// The answer to [`Question::LockRegions`].
    LockRegions(LockRegions),
    /// The answer to [`Look::LibcFunctions`].
    LibcFunctions(Box<LibcAnswer>),
    /// The answer to [`Look::UnwindRows`]. A file with all rows is sent with it. `None`, without a file: the binary has
    /// no unwind tables.
    UnwindRows(Option<Box<RowsTold>>),
    /// The answer to [`Look::MovesCode`].
    MovesCode(bool),
    /// The answer to [`Look::GoRuntime`]; `None` if the place is not known.
    GoRuntime(Option<GoRuntime>),
    /// The binary cannot be used.
    Failed {
        /// The kind of failure.
        kind: FailureKind,
        /// The message as one line.
        text: String,
    },
}

/// Which symbols and debug information a binary has.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SymbolSummary {
    /// The binary's name in messages.
    pub module: String,
    /// The binary's build-id.
    pub build_id: Option<BuildId>,
    /// The table from which function names come.
    pub source: SymbolSource,
    /// Number of function symbols.
    pub functions: usize,
    /// Whether Go built the binary.
    pub is_go: bool,
    /// Whether the binary contains Rust's standard library.
    pub is_rust: bool,
    /// Whether the program may copy, move, patch or compare its own instructions.
    pub moves_code: MovesCode,
    /// Why there are no lines and no inlined functions; `None` if there are some.
    pub no_lines: Option<Reason>,
    /// One sentence for each debug file that was found but does not belong to the binary.
    pub refused: Vec<String>,
    /// Whether the supplement is missing, the file that several debug files share.
    pub supplement_missing: bool,
}

impl SymbolSummary {
    /// The summary of a module that has been read.
    pub fn of(module: &ModuleFunctions, no_lines: Option<Reason>, supplement_missing: bool) -> SymbolSummary {
        SymbolSummary {
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
