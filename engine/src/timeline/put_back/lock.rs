//! A lock of an attached program.

use super::futex_words::Word;
use super::lengths::Lengths;
use super::lock_samples::Share;

/// A lock whose acquisitions are put back (estimated).
pub(super) struct Lock<'a> {
    pub(super) word: &'a Word,
    /// For each thread: the share of its running time in which it holds the lock.
    pub(super) shares: Vec<f64>,
    /// Share of the running time in which the lock is held, for all threads together that use it.
    pub(super) share: Share,
    pub(super) lengths: Lengths,
}

impl Lock<'_> {
    /// Process and address.
    pub(super) fn key(&self) -> (u32, u64) {
        (self.word.pid, self.word.address)
    }
}
