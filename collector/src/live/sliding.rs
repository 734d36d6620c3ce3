//! The sliding window: when the next report is due, and what it is made of.

use super::analyst::{Analyst, Job};
use super::intake::Batch;
use super::pump::Feed;
use super::stretch::Stretch;
use engine::event::{Facts, WindowEnd};
use std::sync::atomic::{AtomicBool, Ordering};

/// When there is a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Due {
    /// Every so many nanoseconds of recorded time, from the start on; those for which the analysis has no time
    /// are left out.
    Every(u64),
    /// Once, when the window is full for the first time.
    WhenFull {
        /// Until then samples are looked at every so many nanoseconds of recorded time.
        look_ns: u64,
    },
}

/// A window and who looks at it.
pub struct Sliding {
    stretch: Stretch,
    due: Due,
    /// `None`: no more reports but the last.
    next_ns: Option<u64>,
    /// When samples are looked at beside that.
    next_look_ns: u64,
    analyst: Analyst,
}

impl Sliding {
    /// A window of `span_ns` and at most `max_events` records after `facts`.
    pub fn new(facts: Facts, span_ns: u64, max_events: usize, due: Due, analyst: Analyst) -> Sliding {
        let first_ns = match due {
            Due::Every(ns) => ns,
            Due::WhenFull { .. } => span_ns,
        };
        let next_ns = Some(facts.start_ns.saturating_add(first_ns));
        let next_look_ns = match due {
            Due::Every(_) => u64::MAX,
            Due::WhenFull { look_ns } => facts.start_ns.saturating_add(look_ns.max(1)),
        };
        Sliding { stretch: Stretch::new(facts, span_ns, max_events), due, next_ns, next_look_ns, analyst }
    }

    /// Takes what the pump brings.
    pub fn take(&mut self, item: &Feed, skip_last: &AtomicBool) {
        match item {
            Feed::Batch(batch) => {
                self.stretch.take(batch);
                self.report_if_due(batch);
            }
            Feed::Functions(functions) => self.stretch.add_functions(functions),
            // Where binaries lay matters to a file that is read elsewhere.
            Feed::Modules(_) => {}
            Feed::Mappings(mappings) => self.stretch.add_mappings(mappings),
            Feed::Addresses(addresses) => self.stretch.add_addresses(addresses),
            Feed::Code(code) => self.stretch.add_code(code),
            Feed::End(end) => {
                if !skip_last.load(Ordering::Relaxed) {
                    self.hand_over(end.clone(), true);
                }
            }
        }
    }

    fn report_if_due(&mut self, batch: &Batch) {
        let Batch { complete_to_ns, loss, overhead, .. } = *batch;
        let Some(next_ns) = self.next_ns else { return };
        if complete_to_ns < next_ns {
            self.look_if_due(batch);
            return;
        }
        if self.analyst.busy() {
            return;
        }
        let end_ns = match self.due {
            // The first full window, to the nanosecond, whatever the batches.
            Due::WhenFull { .. } => next_ns,
            Due::Every(_) => complete_to_ns,
        };
        self.next_ns = match self.due {
            Due::WhenFull { .. } => None,
            Due::Every(every_ns) => {
                // The next one that still lies ahead, on the same grid.
                let missed = (complete_to_ns - next_ns) / every_ns.max(1);
                Some(next_ns.saturating_add(every_ns.max(1).saturating_mul(missed + 1)))
            }
        };
        self.hand_over(WindowEnd { end_ns, loss, overhead, ..WindowEnd::default() }, true);
    }

    fn look_if_due(&mut self, batch: &Batch) {
        let Due::WhenFull { look_ns } = self.due else { return };
        let Batch { complete_to_ns, loss, overhead, .. } = *batch;
        if complete_to_ns < self.next_look_ns || self.analyst.busy() {
            return;
        }
        self.next_look_ns = complete_to_ns.saturating_add(look_ns.max(1));
        let end = WindowEnd { end_ns: complete_to_ns, loss, overhead, ..WindowEnd::default() };
        self.hand_over(end, false);
    }

    fn hand_over(&mut self, end: WindowEnd, reported: bool) {
        let recording = self.stretch.ending(end);
        self.analyst.answer(Job { recording, cut_by_events: self.stretch.is_cut(), reported });
    }

    /// Waits for the last report, unless nobody wants it.
    pub fn finish(self, skip: bool) {
        self.analyst.finish(skip);
    }
}
