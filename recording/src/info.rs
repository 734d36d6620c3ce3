//! Facts about a session's file that are known after reading it.

use super::{Damage, Meta};

/// Facts about the file of a recording.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SessionInfo {
    /// Version of the format: major, minor.
    pub version: (u16, u16),
    /// The session's own description; `None` if the file ends before the description.
    pub meta: Option<Meta>,
    /// Size of the file, in bytes.
    pub file_bytes: u64,
    /// Number of chunks read, including unknown ones.
    pub chunks: u64,
    /// Number of events read.
    pub events: u64,
    /// Number of chunks of a kind that this version does not know.
    pub unknown_chunks: u64,
    /// Number of records of a kind that this version does not know.
    pub unknown_records: u64,
    /// What is missing at the end; `None` if the session is complete.
    pub damage: Option<Damage>,
}

impl SessionInfo {
    /// Whether everything that was recorded has been read.
    pub fn whole(&self) -> bool {
        self.damage.is_none()
    }
}
