//! How threads use words of memory that others may use, too.

use serde::{Deserialize, Serialize};

/// What an instruction does with a word of memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Access {
    /// Changes it atomically.
    #[default]
    Atomic,
    /// Changes it, or its cache line some instructions later, by plain stores.
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
