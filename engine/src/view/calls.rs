//! Function slices: entries and exits of probed functions.

use super::measured::Measured;
use crate::event::FunctionId;
use crate::time::Timestamp;
use crate::timeline::{StepKind, Thread};
use std::collections::VecDeque;

/// An entry or an exit of a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slice<'a> {
    /// Time of the entry or exit.
    pub time: Timestamp,
    /// The function that is entered; `None`: an exit of the innermost one.
    pub enters: Option<&'a str>,
}

/// Walks through a thread's steps.
pub(super) struct Calls<'m> {
    measured: &'m Measured<'m>,
    thread: Option<&'m Thread>,
    step: usize,
    base: usize,
    open: usize,
    /// Entries to give before any further step.
    pending: VecDeque<(Timestamp, FunctionId)>,
    last: Timestamp,
}

impl<'m> Calls<'m> {
    pub(super) fn of(measured: &'m Measured<'_>, thread: usize) -> Calls<'m> {
        let thread = measured.timeline.threads.get(thread);
        let last = thread.map_or(Timestamp(0), |thread| thread.start);
        Calls { measured, thread, step: 0, base: 0, open: 0, pending: VecDeque::new(), last }
    }

    /// Limits a time so that times never decrease.
    fn at(&mut self, time: Timestamp, end: Timestamp) -> Timestamp {
        self.last = time.min(end).max(self.last);
        self.last
    }
}

impl<'m> Iterator for Calls<'m> {
    type Item = Slice<'m>;

    fn next(&mut self) -> Option<Slice<'m>> {
        let thread = self.thread?;
        loop {
            if let Some((time, function)) = self.pending.pop_front() {
                self.open += 1;
                let time = self.at(time, thread.end);
                return Some(Slice { time, enters: Some(self.measured.function(function)) });
            }
            let base = thread.base_stacks.get(self.base);
            if let Some(base) = base.filter(|base| base.first_step as usize <= self.step) {
                // An exec ends all open functions.
                if self.open > 0 {
                    self.open -= 1;
                    return Some(Slice { time: self.at(base.time, thread.end), enters: None });
                }
                self.base += 1;
                self.pending.extend(base.functions.iter().rev().map(|function| (base.time, *function)));
                continue;
            }
            let Some(step) = thread.steps.get(self.step) else {
                if base.is_some() {
                    self.step = usize::MAX;
                    continue;
                }
                self.open = self.open.checked_sub(1)?;
                return Some(Slice { time: self.at(thread.end, thread.end), enters: None });
            };
            self.step += 1;
            match step.kind {
                StepKind::Enter(function) => self.pending.push_back((step.time, function)),
                StepKind::Leave if self.open > 0 => {
                    self.open -= 1;
                    return Some(Slice { time: self.at(step.time, thread.end), enters: None });
                }
                _ => {}
            }
        }
    }
}
