//! The sliding window: when the next report is due, and what it is made of.

use super::analysis_thread::{AnalysisThread, Job};
use super::decoder::Batch;
use super::pacing::Pacing;
use super::recent_window::RecentWindow;
use super::ring_reader::WriterMessage;
use engine::event::{Facts, WindowEnd};
use std::sync::atomic::{AtomicBool, Ordering};

/// When there is a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Due {
    /// Always after this many nanoseconds of recorded time, or less often and for fewer events if that takes
    /// too much ([`Pacing`]).
    Every(u64),
    /// Once, when the window is full for the first time.
    WhenFull {
        /// Until then samples are looked at after every `look_ns` of recorded time, or less often.
        look_ns: u64,
    },
}

/// A window and its analysis.
pub struct Sliding {
    recent: RecentWindow,
    pacing: Pacing,
    /// Where the only window ends, if there is only one and it has not come yet.
    full_ns: Option<u64>,
    /// There are no more reports but the last.
    is_over: bool,
    analysis: AnalysisThread,
}

impl Sliding {
    /// A window of `span_ns` and at most `max_events` records after `facts`.
    pub fn new(facts: Facts, span_ns: u64, max_events: usize, due: Due, analysis: AnalysisThread) -> Sliding {
        let start_ns = facts.start_ns;
        let (every_ns, full_ns) = match due {
            Due::Every(ns) => (ns, None),
            Due::WhenFull { look_ns } => (look_ns, Some(start_ns.saturating_add(span_ns))),
        };
        let pacing = Pacing::new(start_ns, every_ns, max_events);
        Sliding {
            recent: RecentWindow::new(facts, span_ns, max_events),
            pacing,
            full_ns,
            is_over: false,
            analysis,
        }
    }

    /// Takes what the reader delivers.
    pub fn take(&mut self, item: &WriterMessage, skip_last: &AtomicBool) {
        match item {
            WriterMessage::Batch(batch) => {
                self.recent.take(batch);
                self.report_if_due(batch);
            }
            WriterMessage::Functions(functions) => self.recent.add_functions(functions),
            // Where binaries lay matters to a file that is read elsewhere.
            WriterMessage::Modules(_) => {}
            WriterMessage::Mappings(mappings) => self.recent.add_mappings(mappings),
            WriterMessage::Addresses(addresses) => self.recent.add_addresses(addresses),
            WriterMessage::Code(code) => self.recent.add_code(code),
            WriterMessage::End(end) => {
                if !skip_last.load(Ordering::Relaxed) {
                    self.hand_over(end.clone(), true);
                }
            }
        }
    }

    fn report_if_due(&mut self, batch: &Batch) {
        let Batch { complete_to_ns, loss, overhead, .. } = *batch;
        if self.is_over || self.analysis.busy() {
            return;
        }
        if let Some(spent) = self.analysis.take_spent() {
            log::debug!("analysed: {spent:?}; the next gets {} events", self.pacing.events());
            self.pacing.took(spent);
        }
        let end = |end_ns| WindowEnd { end_ns, loss, overhead, ..WindowEnd::default() };
        if let Some(full_ns) = self.full_ns.filter(|full_ns| complete_to_ns >= *full_ns) {
            // The first full window, to the nanosecond, with any batches.
            self.is_over = true;
            self.hand_over(end(full_ns), true);
        } else if self.pacing.is_due(complete_to_ns, overhead.as_ref()) {
            self.pacing.begins(complete_to_ns, overhead.as_ref());
            self.hand_over(end(complete_to_ns), self.full_ns.is_none());
        }
    }

    fn hand_over(&mut self, end: WindowEnd, reported: bool) {
        // The only window is analysed as a whole, whatever it costs.
        let most = if self.full_ns.is_some() { usize::MAX } else { self.pacing.events() };
        let recording = self.recent.ending(end, most);
        log::debug!("analysis of {} of at most {most} events", recording.events.len());
        self.analysis.answer(Job { recording, cut_by_events: self.recent.is_cut(), reported });
    }

    /// Waits for the last report, unless it is not wanted.
    pub fn finish(self, skip: bool) {
        self.analysis.finish(skip);
    }
}
