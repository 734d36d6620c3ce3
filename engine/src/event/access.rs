//! Accesses of threads to words of memory that other threads may use.

use serde::{Deserialize, Serialize};

/// How an instruction uses a word of memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Access {
    /// Changes it atomically.
    #[default]
    Atomic,
    /// A plain store to the word, or some instructions later to its cache line.
    Write,
    /// Reads it.
    Read,
}

impl Access {
    /// Whether it is an atomic change.
    #[must_use]
    pub fn is_atomic(&self) -> bool {
        *self == Access::Atomic
    }
}
