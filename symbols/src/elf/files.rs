//! Other files that may have a binary's symbols, and the interface that opens them. A parser without rights asks for
//! files through this interface; the process with rights decides which files the parser may read.

use super::build_id::BuildId;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::path::PathBuf;

/// A file that is wanted. Its fields come from the binary and are as untrusted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FileRequest {
    /// The separate debug file with this build-id.
    BuildId(BuildId),
    /// The file that `.gnu_debuglink` names.
    DebugLink(String),
    /// The file that several debug files share (`.gnu_debugaltlink`, made by dwz).
    Supplement {
        /// Path of the supplement, as the debug file names it.
        path: String,
        /// Its build-id.
        build_id: Option<BuildId>,
    },
    /// A `.dwo` file of `-gsplit-dwarf`.
    SplitObject {
        /// The folder that the compiler worked in.
        folder: Option<String>,
        /// Path of the object file, as the compiler named it.
        name: String,
    },
    /// The `.dwp` file that holds all `.dwo` files.
    SplitPackage,
}

/// A file that may be the wanted one. The caller must compare build-id, checksum or number.
#[derive(Debug)]
pub struct Candidate {
    /// The open file.
    pub file: File,
    /// Path of the file, for messages.
    pub path: PathBuf,
    /// Number of the place at which the search continues if this is the wrong file.
    pub next: u32,
}

/// Opens files.
pub trait Files: Send {
    /// Opens the first existing file among the places for a request, from place number `from` on.
    fn open(&mut self, request: &FileRequest, from: u32) -> Option<Candidate>;
}

/// Fetches files that are not on this machine, for instance from a server.
pub trait Fetch: Send + Sync + std::fmt::Debug {
    /// The debug file with this build-id, and its present path.
    fn debug_file(&self, id: &BuildId) -> Option<(File, PathBuf)>;
}

/// Largest number of candidates opened for one request.
const MAX_CANDIDATES: u32 = 64;

/// Opens candidates until `right` accepts one.
pub fn search<T>(
    files: &mut dyn Files,
    request: &FileRequest,
    mut right: impl FnMut(Candidate) -> Option<T>,
) -> Option<T> {
    let mut from = 0;
    while from < MAX_CANDIDATES {
        let candidate = files.open(request, from)?;
        from = candidate.next.max(from.saturating_add(1));
        if let Some(found) = right(candidate) {
            return Some(found);
        }
    }
    None
}
