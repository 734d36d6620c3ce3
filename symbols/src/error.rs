//! The errors of reading a binary's symbols. Each has a message of one line and a hint.

use crate::names::{listed, safe_path};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// Why a binary's symbols cannot be read. `Display` is one line; [`SymbolError::hint`] says what the user can do.
#[derive(Debug, thiserror::Error)]
pub enum SymbolError {
    /// The file cannot be opened.
    #[error("cannot open {}: {source}", safe_path(path))]
    Open {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// The file is shorter than its headers say, or reading fails.
    #[error("cannot read {}: {what}", safe_path(path))]
    Read {
        /// The file.
        path: PathBuf,
        /// The part of the file that cannot be read, and why.
        what: String,
    },
    /// The path leads to a directory, pipe or device.
    #[error("{} is not a regular file", safe_path(path))]
    NotRegular {
        /// The file.
        path: PathBuf,
    },
    /// The file is not an ELF file, or its headers contradict themselves.
    #[error("{} is not a usable ELF file: {reason}", safe_path(path))]
    NotElf {
        /// The file.
        path: PathBuf,
        /// What is wrong with the file.
        reason: String,
    },
    /// The file is an ELF file of a kind that longpole cannot read.
    #[error("{} is {what}, which longpole cannot read", safe_path(path))]
    Unsupported {
        /// The file.
        path: PathBuf,
        /// The kind of file, with its article (`a 32-bit file`).
        what: &'static str,
    },
    /// A part of the file is larger than in any honest file.
    #[error("{}: {what} is larger than {limit} bytes", safe_path(path))]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// The part of the file that is too large.
        what: &'static str,
        /// The limit, in bytes.
        limit: u64,
    },
    /// The parser process ended while it read this file.
    #[error("cannot read {}: the process that reads its symbols {what}", safe_path(path))]
    Parser {
        /// The file.
        path: PathBuf,
        /// How the process ended, as the end of a sentence.
        what: String,
    },
    /// The user gave a name that several functions have.
    #[error("'{name}' matches {} functions: {}", may_be.len(), listed(may_be))]
    Unclear {
        /// The name, as the user gave it.
        name: String,
        /// Names of the functions that the user may have meant.
        may_be: Vec<String>,
    },
    /// The parser process reported an error.
    #[error("{text}")]
    Told {
        /// The kind of failure.
        kind: FailureKind,
        /// The message as one line.
        text: String,
    },
}

impl SymbolError {
    /// What the user can do, in one line.
    pub fn hint(&self) -> &'static str {
        match self {
            SymbolError::Open { source, .. } if source.kind() == std::io::ErrorKind::PermissionDenied => {
                "run as root, or as the owner of the process with CAP_SYS_PTRACE"
            }
            SymbolError::Open { .. } => {
                "check the path; a process that has ended takes its /proc files with it"
            }
            SymbolError::Unclear { .. } => "give more of the name, or a pattern with * for all of them",
            SymbolError::NotRegular { .. } => "name the program's own file",
            SymbolError::Read { .. } | SymbolError::NotElf { .. } => {
                "leave out --exact and --functions to record samples and scheduler events"
            }
            SymbolError::Parser { .. } => {
                "the file is damaged or hostile; leave out --exact and --functions to record samples and scheduler events"
            }
            SymbolError::Told { kind: FailureKind::NotElf | FailureKind::Unreadable, .. } => {
                "leave out --exact and --functions to record samples and scheduler events"
            }
            SymbolError::Unsupported { .. }
            | SymbolError::TooLarge { .. }
            | SymbolError::Told { kind: FailureKind::Unsupported, .. } => {
                "leave out --exact and --functions: samples and scheduler events need no symbols"
            }
        }
    }

    pub(super) fn not_elf(path: &Path, reason: impl Into<String>) -> SymbolError {
        SymbolError::NotElf { path: path.to_owned(), reason: reason.into() }
    }
}

/// The kind of a [`SymbolError`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FailureKind {
    /// The file cannot be opened or read.
    Unreadable,
    /// The file is not an ELF file.
    NotElf,
    /// The file is an ELF file of a kind that longpole cannot read.
    Unsupported,
}

impl From<&SymbolError> for FailureKind {
    fn from(error: &SymbolError) -> FailureKind {
        match error {
            SymbolError::Open { .. } | SymbolError::NotRegular { .. } | SymbolError::Read { .. } => {
                FailureKind::Unreadable
            }
            SymbolError::NotElf { .. } => FailureKind::NotElf,
            SymbolError::Unsupported { .. } | SymbolError::TooLarge { .. } => FailureKind::Unsupported,
            SymbolError::Parser { .. } | SymbolError::Unclear { .. } => FailureKind::Unreadable,
            SymbolError::Told { kind, .. } => *kind,
        }
    }
}
