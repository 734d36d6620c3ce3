//! Assigns each sample of a thread to the operation in which it was taken.

use crate::program::Sample;
use crate::time::Timestamp;
use crate::timeline::{Hit, StackSample};
use probe_abi::SampleReason;

/// Walks along a thread's running stretches, in order of time.
#[derive(Debug, Default)]
pub(in crate::program) struct Ticking<'a> {
    /// Samples not yet passed.
    seen: &'a [StackSample],
    /// Index of the stack that is used for samples without a known stack.
    no_stack: u32,
    /// Stacks of samples since the last operation, and number of truncated stacks.
    stacks: Vec<u32>,
    cut: u64,
    placed: Ticks,
    probes: Probes<'a>,
}

/// A hit may have taken up to this many times the measured cost.
const LONGER: u64 = 2;

/// Finds which samples are in probe hits, whose time is not in the operations.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::program) struct Probes<'a> {
    /// Probe hits in order of time; empty if their cost is not subtracted.
    pub(in crate::program) hits: &'a [Hit],
    /// For each stack: whether its innermost frame is in a probe.
    pub(in crate::program) stacks: &'a [bool],
}

impl Probes<'_> {
    fn took(&self, seen: &StackSample) -> bool {
        if self.stacks.get(seen.stack as usize).is_some_and(|in_probe| *in_probe) {
            return !self.hits.is_empty();
        }
        let time = seen.time.0;
        let last = self.hits.partition_point(|hit| hit.time.0 <= time);
        let hit = |at: Option<usize>| at.and_then(|at| self.hits.get(at));
        let long = |ns: u32| LONGER * u64::from(ns);
        hit(last.checked_sub(1)).is_some_and(|hit| time - hit.time.0 <= long(hit.after_ns))
            || hit(Some(last)).is_some_and(|hit| hit.time.0 - time <= long(hit.before_ns))
    }
}

/// A thread's samples, and how many samples were dropped for each reason.
#[derive(Debug, Default)]
pub(in crate::program) struct Ticks {
    pub(in crate::program) samples: Vec<Sample>,
    /// Samples in no operation, or in a probe hit.
    pub(in crate::program) elsewhere: u64,
    /// Samples in operations with a truncated stack.
    pub(in crate::program) truncated: u64,
}

impl<'a> Ticking<'a> {
    pub(in crate::program) fn of(seen: &'a [StackSample], no_stack: u32, probes: Probes<'a>) -> Ticking<'a> {
        Ticking { seen, no_stack, probes, ..Ticking::default() }
    }

    /// The thread computed in this time.
    pub(in crate::program) fn run(&mut self, from: Timestamp, until: Timestamp) {
        while let Some((seen, later)) = self.seen.split_first().filter(|(seen, _)| seen.time < until) {
            self.seen = later;
            if seen.reason != SampleReason::Tick {
                continue;
            }
            if seen.time < from || self.probes.took(seen) {
                self.placed.elsewhere += 1;
                continue;
            }
            self.stacks.push(if seen.stack < self.no_stack { seen.stack } else { self.no_stack });
            self.cut += u64::from(seen.truncated);
        }
    }

    /// Assigns the samples since the last operation to the operation with this index.
    pub(in crate::program) fn are_in(&mut self, operation: u32) {
        self.placed.samples.extend(self.stacks.drain(..).map(|stack| Sample { operation, stack }));
        self.placed.truncated += std::mem::take(&mut self.cut);
    }

    /// The thread computes no more: counts all other samples as elsewhere.
    pub(in crate::program) fn finish(mut self) -> Ticks {
        let left = self.seen.iter().filter(|seen| seen.reason == SampleReason::Tick).count();
        self.placed.elsewhere += (left + self.stacks.len()) as u64;
        self.placed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// If samples in probe hits stayed, reports would have rows for them: `[uprobes]`, and code behind a function's
    /// `ret`.
    #[test]
    fn samples_in_probe_hits_are_removed_with_the_hits_time() {
        let seen: Vec<StackSample> = [5, 70, 95, 100, 139, 141, 150]
            .map(|time| StackSample {
                time: Timestamp(time),
                stack: u32::from(time == 150),
                reason: SampleReason::Tick,
                truncated: false,
            })
            .to_vec();
        let hits = [Hit { time: Timestamp(100), before_ns: 10, after_ns: 20 }];
        let placed = |hits: &[Hit]| {
            let probes = Probes { hits, stacks: &[false, true] };
            let mut ticking = Ticking::of(&seen, 2, probes);
            ticking.run(Timestamp(6), Timestamp(200));
            ticking.are_in(3);
            let ticks = ticking.finish();
            (ticks.samples.len(), ticks.elsewhere)
        };
        assert_eq!(placed(&hits), (2, 5), "those at 70 and 141");
        assert_eq!(placed(&[]), (6, 1), "their cost stays in, and so do they");
    }
}
