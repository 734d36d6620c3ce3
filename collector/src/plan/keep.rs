//! Which part of a recording is kept.

use super::trigger::Condition;
use std::time::Duration;

/// The part of a recording that its file contains.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Keep {
    /// All of the recording.
    #[default]
    All,
    /// The last stretch of time. It stays in memory until it is saved.
    Ring(RingPlan),
    /// The newest part, as much as fits into a file of limited size.
    Newest {
        /// Largest size of the file, bytes; at least [`LEAST_FILE_BYTES`].
        most_bytes: u64,
    },
}

/// Options of `longpole record --ring`.
#[derive(Clone, Debug, PartialEq)]
pub struct RingPlan {
    /// Length of the ring; longer than 0.
    pub span: Duration,
    /// Conditions that save the ring.
    pub triggers: Vec<Condition>,
}

/// Largest memory of a ring, bytes: packed records and the facts for them.
pub const MOST_RING_BYTES: u64 = 256 << 20;

/// Least size limit of a file, bytes: enough for the names of a large program and some records.
pub const LEAST_FILE_BYTES: u64 = 1 << 20;
