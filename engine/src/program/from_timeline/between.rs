//! What a thread does between the borders of its intervals, from the four lists that know of it.

use crate::program::lock_replay::Begin;
use crate::program::spins::{Mark, MarkKind};
use crate::time::Timestamp;
use crate::timeline::{BaseStack, Step, StepKind, Thread};
use std::iter::{Peekable, Zip};
use std::ops::RangeFrom;
use std::slice;
use std::vec;

/// One of the things that a thread does.
pub(super) enum Event<'a> {
    Mark(MarkKind),
    /// These functions were open all along.
    Base(&'a BaseStack),
    /// A recorded operation begins.
    Begin(Begin),
    Step(&'a Step),
}

/// What a thread has yet to do, in its order.
pub(super) struct Between<'a> {
    marks: Peekable<vec::IntoIter<Mark>>,
    bases: Peekable<slice::Iter<'a, BaseStack>>,
    begins: Peekable<vec::IntoIter<Begin>>,
    steps: Peekable<Zip<RangeFrom<u32>, slice::Iter<'a, Step>>>,
    /// The step after that of its last recorded operation.
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

    /// The next event of the interval from `start` to `end`, before whose end lie the steps below `next`, and its time,
    /// which may lie outside the interval.
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
        // What was open all along is called before the time it was open for, not before the first step.
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
        // A hole has the time from which on operations are missing, even if that is noticed later.
        let has_come = |(number, step): &(u32, &Step)| *number < next || is_hole(step) && step.time < end;
        let (_, step) = self.steps.next_if(has_come)?;
        Some((step.time, Event::Step(step)))
    }

    /// The next event after all intervals: those of a thread that was recorded at one instant only.
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

    /// Whether none of its recorded operations is yet to come.
    pub(super) fn has_operated(&mut self) -> bool {
        self.steps.peek().is_none_or(|(number, _)| *number as usize >= self.operated)
    }
}
