//! The interface that opens other files with a binary's symbols. A parser without rights asks for files through this
//! interface, and the process with rights decides which files the parser may read.

use super::build_id::BuildId;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::path::PathBuf;

/// A request for a file. The fields come from the untrusted binary, so they are untrusted, too.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FileRequest {
    /// The separate debug file with this build-id.
    BuildId(BuildId),
    /// The file that `.gnu_debuglink` names.
    DebugLink(String),
    /// The file that several debug files share (`.gnu_debugaltlink`). The tool dwz makes such files.
    Supplement {
        /// Path of the supplement, as the debug file names it.
        path: String,
        /// The supplement's build-id.
        build_id: Option<BuildId>,
    },
    /// A `.dwo` file of `-gsplit-dwarf`.
    SplitObject {
        /// The compiler's working folder.
        folder: Option<String>,
        /// Path of the object file, as the compiler named it.
        name: String,
    },
    /// The `.dwp` file that holds all `.dwo` files.
    SplitPackage,
}

/// A file that may be the requested one. The caller must compare its build-id, checksum or number.
#[derive(Debug)]
pub struct Candidate {
    /// The open file.
    pub file: File,
    /// Path of the file, for messages.
    pub path: PathBuf,
    /// The place number from which to continue the search if this is the wrong file.
    pub next: u32,
}

/// Opens files.
pub trait Files: Send {
    /// Opens the first existing file for a request. The search begins at place number `from`.
    fn open(&mut self, request: &FileRequest, from: u32) -> Option<Candidate>;
}

/// Fetches files that are not on this machine, for instance from a server.
pub trait Fetch: Send + Sync + std::fmt::Debug {
    /// Fetches the debug file with this build-id. Returns the open file and its path on this machine.
    fn debug_file(&self, id: &BuildId) -> Option<(File, PathBuf)>;
}

/// Largest number of candidates that are opened for one request.
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
