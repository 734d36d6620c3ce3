//! Samples of a thread find the operations that they were taken in.

use super::Sample;
use crate::time::Timestamp;
use crate::timeline::Seen;
use probe_abi::SampleReason;

/// Goes along a thread's running stretches, in order of time.
#[derive(Debug, Default)]
pub(super) struct Ticking<'a> {
    /// Those to come.
    seen: &'a [Seen],
    /// Stack of samples without one.
    no_stack: u32,
    /// Stacks seen since the last operation, and how many of them were cut short.
    stacks: Vec<u32>,
    cut: u64,
    placed: Ticks,
}

/// What became of a thread's samples.
#[derive(Debug, Default)]
pub(super) struct Ticks {
    pub(super) samples: Vec<Sample>,
    /// In no operation.
    pub(super) elsewhere: u64,
    /// In operations, with a stack that was cut short.
    pub(super) truncated: u64,
}

impl<'a> Ticking<'a> {
    pub(super) fn of(seen: &'a [Seen], no_stack: u32) -> Ticking<'a> {
        Ticking { seen, no_stack, ..Ticking::default() }
    }

    /// The thread computed from `from` until `until`.
    pub(super) fn run(&mut self, from: Timestamp, until: Timestamp) {
        while let Some((seen, later)) = self.seen.split_first().filter(|(seen, _)| seen.time < until) {
            self.seen = later;
            if seen.reason != SampleReason::Tick {
                continue;
            }
            if seen.time < from {
                self.placed.elsewhere += 1;
                continue;
            }
            self.stacks.push(if seen.stack < self.no_stack { seen.stack } else { self.no_stack });
            self.cut += u64::from(seen.truncated);
        }
    }

    /// What was computed since the last operation becomes the operation with this index.
    pub(super) fn are_in(&mut self, operation: u32) {
        self.placed.samples.extend(self.stacks.drain(..).map(|stack| Sample { operation, stack }));
        self.placed.truncated += std::mem::take(&mut self.cut);
    }

    /// Nothing more is computed.
    pub(super) fn finish(mut self) -> Ticks {
        let left = self.seen.iter().filter(|seen| seen.reason == SampleReason::Tick).count();
        self.placed.elsewhere += (left + self.stacks.len()) as u64;
        self.placed
    }
}
