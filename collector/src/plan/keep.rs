//! How much of a recording is kept.

use super::trigger::Condition;
use std::time::Duration;

/// Which part of what is recorded a file gets.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Keep {
    /// All of it.
    #[default]
    All,
    /// The last stretch, which is in memory until it is saved.
    Ring(RingPlan),
    /// The last part, as much of it as fits into a file of this size.
    Newest {
        /// Most bytes of the file; at least [`LEAST_FILE_BYTES`].
        most_bytes: u64,
    },
}

/// `record --ring`.
#[derive(Clone, Debug, PartialEq)]
pub struct RingPlan {
    /// How long it is; longer than 0.
    pub span: Duration,
    /// Each of them saves it.
    pub triggers: Vec<Condition>,
}

/// Most memory of a ring, in bytes of packed records and all that belongs to them.
pub const MOST_RING_BYTES: u64 = 256 << 20;

/// A file that may be this large holds the names of a large program and some records.
pub const LEAST_FILE_BYTES: u64 = 1 << 20;
