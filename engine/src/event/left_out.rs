//! What a session file had no room for.

use serde::{Deserialize, Serialize};

/// What is missing in a recording because a file limits everything except events, so that a reader needs
/// bounded memory. Entries, counted by the writer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct LeftOut {
    /// Entries of the lists in [`super::Facts`]: threads, functions, names of locks and code, mappings.
    pub facts: u64,
    /// Notes about gaps and probes.
    pub notes: u64,
    /// Stacks: samples that name them have none.
    pub stacks: u64,
    /// Threads and pending operations at the end.
    pub end: u64,
}

impl LeftOut {
    /// Whether everything had room.
    pub fn is_nothing(&self) -> bool {
        *self == LeftOut::default()
    }
}
