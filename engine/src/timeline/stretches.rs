//! Stretches of a thread from one place with a probe to another, whatever functions are open there.
//!
//! Such records have [`NO_FRAME`](probe_abi::NO_FRAME) in place of a stack pointer. A beginning inside an open stretch of the
//! same pair of places changes nothing, so the outermost one counts. An end without a beginning is ignored: the stretch began
//! before the probes came.

use crate::event::FunctionId;
use crate::time::Timestamp;

/// A stretch of a thread from one place to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stretch {
    /// The number of the pair of places in the table of functions.
    pub function: FunctionId,
    /// Time at the first place.
    pub begin: Timestamp,
    /// Time at the second place; `None`: the end is not in the recording.
    pub end: Option<Timestamp>,
}

/// Largest number of pairs whose stretches are open at a time in one thread.
const MOST_OPEN: usize = 256;

/// The stretches of one thread.
#[derive(Clone, Debug, Default)]
pub(super) struct Stretches {
    ended: Vec<Stretch>,
    open: Vec<Stretch>,
}

impl Stretches {
    /// The thread is at the first place.
    pub(super) fn begin(&mut self, function: FunctionId, time_ns: u64) {
        if self.open.len() < MOST_OPEN && !self.open.iter().any(|open| open.function == function) {
            self.open.push(Stretch { function, begin: Timestamp(time_ns), end: None });
        }
    }

    /// The thread is at the second place.
    pub(super) fn end(&mut self, function: FunctionId, time_ns: u64) {
        if let Some(place) = self.open.iter().position(|open| open.function == function) {
            let end = Some(Timestamp(time_ns));
            self.ended.push(Stretch { end, ..self.open.swap_remove(place) });
        }
    }

    /// Forgets open stretches whose end may not be recorded.
    pub(super) fn forget(&mut self, gone: &dyn Fn(FunctionId) -> bool) {
        self.open.retain(|open| !gone(open.function));
    }

    /// All stretches, in order of their beginnings.
    pub(super) fn finish(self) -> Vec<Stretch> {
        let mut all = self.ended;
        all.extend(self.open);
        all.sort_by_key(|stretch| stretch.begin);
        all
    }
}
