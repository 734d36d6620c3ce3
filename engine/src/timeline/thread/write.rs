//! Writes a thread's intervals and waits.

use super::thread_tracker::{Tally, ThreadTracker};
use super::wait_reason::WaitReason;
use crate::time::Timestamp;
use crate::timeline::model::{External, Interval, State, Wait, Wake};

impl ThreadTracker {
    /// Writes the open interval as a wait that ends at `until_ns`.
    pub(in crate::timeline) fn wait(
        &mut self,
        until_ns: u64,
        reason: WaitReason,
        wake: Wake,
        tally: &mut Tally,
    ) {
        let empty = until_ns <= self.since_ns;
        if empty && !matches!(wake, Wake::By(_)) {
            if !matches!(wake, Wake::CutAtEnd | Wake::CutByUnknown) {
                tally.spurious += 1;
            }
            return;
        }
        let cut_at_start = self.cut_at_start;
        let index = if empty {
            let index = self.no_length(Timestamp(self.since_ns), reason, wake, cut_at_start);
            self.since_step = u32::try_from(self.out.steps.len()).unwrap_or(u32::MAX);
            self.cut_at_start = false;
            index
        } else {
            let index = u32::try_from(self.out.waits.len()).unwrap_or(u32::MAX);
            self.close(until_ns, State::Blocked(index));
            self.out.waits.push(Wait { reason, wake, cut_at_start, moved_to: None, from_now: false });
            index
        };
        match wake {
            Wake::By(wakeup) => tally.ended_by(wakeup, index),
            Wake::External(External::NotSeen) => tally.unmatched += 1,
            Wake::External(_) => tally.wakes += 1,
            Wake::CutAtEnd | Wake::CutByUnknown => {}
        }
        if cut_at_start || wake == Wake::CutAtEnd {
            tally.truncated_waits += 1;
        }
    }

    /// Writes a wait without length after the last interval; returns its index.
    pub(super) fn no_length(
        &mut self,
        at: Timestamp,
        reason: WaitReason,
        wake: Wake,
        cut_at_start: bool,
    ) -> u32 {
        let index = u32::try_from(self.out.waits.len()).unwrap_or(u32::MAX);
        let state = State::Blocked(index);
        self.out.intervals.push(Interval { start: at, state, first_step: self.since_step });
        self.out.waits.push(Wait { reason, wake, cut_at_start, moved_to: None, from_now: false });
        index
    }

    /// Writes the open interval up to `until_ns`, and opens the next one there.
    pub(in crate::timeline) fn close(&mut self, until_ns: u64, state: State) {
        if until_ns > self.since_ns {
            let interval = self.interval(state);
            if self.out.intervals.last().is_none_or(|last| last.state != state) {
                self.out.intervals.push(interval);
            }
            self.since_ns = until_ns;
            self.since_step = u32::try_from(self.out.steps.len()).unwrap_or(u32::MAX);
        }
        self.cut_at_start = false;
    }

    pub(in crate::timeline) fn interval(&self, state: State) -> Interval {
        Interval { start: Timestamp(self.since_ns), state, first_step: self.since_step }
    }
}

impl Tally {
    /// Notes that a wake-up by a recorded thread ended this wait of its wakee.
    pub(in crate::timeline) fn ended_by(&mut self, wakeup: u32, wait: u32) {
        self.wakes += 1;
        if let Some(wakeup) = self.wakeups.get_mut(wakeup as usize) {
            wakeup.ended = Some(wait);
        }
    }
}
