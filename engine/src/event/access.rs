//! Accesses of threads to words of memory that other threads may use.

use serde::{Deserialize, Serialize};

/// How an instruction uses a word of memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Access {
    /// Changes the word atomically.
    #[default]
    Atomic,
    /// Stores to the word, not atomically; or a few instructions later another store to the word's cache line follows.
    Write,
    /// Only reads the word.
    Read,
}

impl Access {
    /// Whether the access is an atomic change.
    #[must_use]
    pub fn is_atomic(&self) -> bool {
        *self == Access::Atomic
    }
}
