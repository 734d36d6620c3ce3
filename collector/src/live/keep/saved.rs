//! The result of saving a ring.

use crate::live::rings::Fired;
use recording::SessionSummary;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

/// Why a ring was saved.
#[derive(Clone, Debug, PartialEq)]
pub enum Reason {
    /// SIGUSR2.
    Signal,
    /// A condition has become true.
    Trigger(Fired),
    /// The recording has ended.
    End,
}

/// A file that a ring was saved to.
#[derive(Clone, Debug, PartialEq)]
pub struct Saved {
    /// The file's path.
    pub path: PathBuf,
    /// Why the ring was saved.
    pub reason: Reason,
    /// Counts of what the file contains.
    pub summary: SessionSummary,
    /// Length of the saved part.
    pub length: Duration,
    /// Whether the saved part is shorter than asked for, because there was no room for more.
    pub is_cut: bool,
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reason::Signal => f.write_str("SIGUSR2"),
            Reason::Trigger(fired) => write!(f, "{}", fired.condition),
            Reason::End => f.write_str("the end"),
        }
    }
}
