//! Data for which a session file had no room.

use serde::{Deserialize, Serialize};

/// Numbers of entries that are missing in a recording.
///
/// A file limits everything except events, so that a reader needs bounded memory. The writer counts the entries beyond
/// the limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct LeftOut {
    /// Entries of the lists in [`super::Facts`]: threads, functions, names of locks and code, mappings.
    pub facts: u64,
    /// Notes about gaps and probes.
    pub notes: u64,
    /// Stacks; samples that refer to them have no stack.
    pub stacks: u64,
    /// Threads and pending operations at the end.
    pub end: u64,
}

impl LeftOut {
    /// Whether nothing is missing.
    pub fn is_nothing(&self) -> bool {
        *self == LeftOut::default()
    }
}
