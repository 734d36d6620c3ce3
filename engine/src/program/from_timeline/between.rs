//! Merges a thread's marks, base stacks, operations' begins and steps into one sequence of events.

use crate::program::lock_replay::Begin;
use crate::program::spinning::spins::{Mark, MarkKind};
use crate::time::Timestamp;
use crate::timeline::{BaseStack, Step, StepKind, Thread};
use std::iter::{Peekable, Zip};
use std::ops::RangeFrom;
use std::slice;
use std::vec;

/// One event of a thread.
pub(super) enum Event<'a> {
    Mark(MarkKind),
    /// These functions were open since the thread's start or since the recording's.
    Base(&'a BaseStack),
    /// A recorded operation begins.
    Begin(Begin),
    Step(&'a Step),
}

/// The events of a thread still to come, in order.
pub(super) struct Between<'a> {
    marks: Peekable<vec::IntoIter<Mark>>,
    bases: Peekable<slice::Iter<'a, BaseStack>>,
    begins: Peekable<vec::IntoIter<Begin>>,
    steps: Peekable<Zip<RangeFrom<u32>, slice::Iter<'a, Step>>>,
    /// Index after the step of the thread's last recorded operation.
    operated: usize,
}

impl<'a> Between<'a> {
    pub(super) fn new(thread: &'a Thread, begins: Vec<Begin>, marks: Vec<Mark>) -> Between<'a> {
        let operates = |step: &Step| matches!(step.kind, StepKind::Operated(_));
        Between {
            marks: marks.into_iter().peekable(),
            bases: thread.base_stacks.iter().peekable(),
            begins: begins.into_iter().peekable(),
            steps: (0u32..).zip(&thread.steps).peekable(),
            operated: thread.steps.iter().rposition(operates).map_or(0, |step| step + 1),
        }
    }

    /// The next event of the interval from `start` to `end`, with its time. That time may lie outside of the interval.
    ///
    /// The interval's steps are those below the index `next`.
    pub(super) fn within(
        &mut self,
        start: Timestamp,
        end: Timestamp,
        next: u32,
    ) -> Option<(Timestamp, Event<'a>)> {
        let upcoming = self.steps.peek().map(|(number, step)| (*number, step.time));
        let number = upcoming.map_or(u32::MAX, |(number, _)| number);
        let latest = upcoming.map_or(end, |(_, time)| time.min(end));
        if let Some(mark) = self.marks.next_if(|mark| mark.time <= latest.0) {
            return Some((Timestamp(mark.time), Event::Mark(mark.kind)));
        }
        // Functions that were always open are called when their base stack begins, not at the thread's first step.
        let is_open = |base: &&BaseStack| {
            base.first_step <= number && (base.time <= start || base.time < end || number < next)
        };
        if let Some(base) = self.bases.next_if(is_open) {
            return Some((base.time.min(latest), Event::Base(base)));
        }
        let has_begun = |begin: &Begin| {
            begin.first_step <= number
                && (begin.time <= start.0 || begin.time < end.0 || begin.first_step < next)
        };
        if let Some(begin) = self.begins.next_if(has_begun) {
            return Some((Timestamp(begin.time), Event::Begin(begin)));
        }
        let is_hole = |step: &Step| matches!(step.kind, StepKind::Hole(_));
        // A hole counts from the time at which operations begin to be missing, even if it is noticed later.
        let has_come = |(number, step): &(u32, &Step)| *number < next || is_hole(step) && step.time < end;
        let (_, step) = self.steps.next_if(has_come)?;
        Some((step.time, Event::Step(step)))
    }

    /// The next event after all intervals, for a thread that was recorded at a single instant only.
    pub(super) fn after_all(&mut self) -> Option<Event<'a>> {
        let number = self.steps.peek()?.0;
        if let Some(base) = self.bases.next_if(|base| base.first_step <= number) {
            return Some(Event::Base(base));
        }
        if let Some(begin) = self.begins.next_if(|begin| begin.first_step <= number) {
            return Some(Event::Begin(begin));
        }
        self.steps.next().map(|(_, step)| Event::Step(step))
    }

    /// Whether the walk has passed all recorded operations of the thread.
    pub(super) fn has_operated(&mut self) -> bool {
        self.steps.peek().is_none_or(|(number, _)| *number as usize >= self.operated)
    }
}
