//! The sliding window: when the next report is due, and which records it is about.

use super::analysis::Depth;
use super::analysis_thread::{AnalysisThread, Job};
use super::pacing::Pacing;
use crate::live::keep::RecentWindow;
use crate::live::rings::{Batch, WriterMessage};
use engine::event::{Facts, GapReason, Note, NoteKind, WindowEnd};
use std::sync::atomic::{AtomicBool, Ordering};

/// How long the first report waits for the trial that decides whether locks can be recorded, ns.
const LONGEST_TRIAL_NS: u64 = 3_000_000_000;

/// When reports are due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Due {
    /// After each interval of this number of nanoseconds of recorded time. Reports are less frequent and use fewer
    /// events if analyses cost too much ([`Pacing`]).
    Every(u64),
    /// Once, when the window is full for the first time.
    WhenFull {
        /// Until then samples are analysed after each `look_ns` of recorded time, or less often.
        look_ns: u64,
    },
}

/// A window that slides over the records, and its analysis.
pub struct Sliding {
    recent: RecentWindow,
    pacing: Pacing,
    /// End of the only window, ns, if there is only one and it is not full yet.
    full_ns: Option<u64>,
    /// Whether only the last report is still to come.
    is_over: bool,
    /// The trial that the first report waits for.
    trial: Option<Trial>,
    analysis: AnalysisThread,
}

/// A trial that decides whether locks can be recorded. Before its result no note says that locks are missing, so a
/// report would name CPUs as the limit of a program with a hot lock.
#[derive(Clone, Copy, Debug)]
struct Trial {
    until_ns: u64,
}

impl Trial {
    fn new(start_ns: u64) -> Trial {
        Trial { until_ns: start_ns.saturating_add(LONGEST_TRIAL_NS) }
    }

    /// Whether the trial is still undecided at this time, after these notes.
    fn goes_on(self, notes: &[Note], now_ns: u64) -> bool {
        let decides = |note: &Note| {
            let decided =
                |reason| matches!(reason, GapReason::LibcNotYetProbed | GapReason::OperationsOff { .. });
            matches!(note.kind, NoteKind::Gap { reason, .. } if decided(reason))
        };
        now_ns < self.until_ns && !notes.iter().any(decides)
    }
}

impl Sliding {
    /// A window of `span_ns` and at most `max_events` records, which begins with `facts`.
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
            trial: None,
            analysis,
        }
    }

    /// Makes the first report wait for the trial of locks.
    pub fn after_trial_of_locks(self) -> Sliding {
        let trial = Some(Trial::new(self.recent.start_ns()));
        Sliding { trial, ..self }
    }

    /// Takes a message of the ring reader.
    pub fn take(&mut self, item: &WriterMessage, skip_last: &AtomicBool) {
        match item {
            WriterMessage::Batch(batch) => {
                self.recent.take(batch);
                self.report_if_due(batch);
            }
            WriterMessage::Functions(functions) => self.recent.add_functions(functions),
            // Only files need these facts: binaries for reading the file on another machine, snapshots for reading it
            // in parts.
            WriterMessage::Modules(_) | WriterMessage::Snapshot(_) => {}
            WriterMessage::Mappings(mappings) => self.recent.add_mappings(mappings),
            WriterMessage::Requests(requests) => self.recent.take_requests(requests),
            WriterMessage::Awaited(awaited) => self.recent.take_awaited(awaited),
            WriterMessage::Goroutines(goroutines) => self.recent.take_goroutines(goroutines),
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
        self.trial = self.trial.filter(|trial| trial.goes_on(&batch.notes, complete_to_ns));
        if self.is_over || self.analysis.busy() {
            return;
        }
        if let Some(spent) = self.analysis.take_spent() {
            log::debug!("analysed: {spent:?}; the next gets {} events", self.pacing.events());
            self.pacing.took(spent);
        }
        let end = |end_ns| WindowEnd { end_ns, loss, overhead, ..WindowEnd::default() };
        if let Some(full_ns) = self.full_ns.filter(|full_ns| complete_to_ns >= *full_ns) {
            // The first full window ends at the same nanosecond with any batches.
            self.is_over = true;
            self.hand_over(end(full_ns), true);
        } else if (self.full_ns.is_some() || self.trial.is_none())
            && self.pacing.is_due(complete_to_ns, overhead.as_ref())
        {
            self.pacing.begins(complete_to_ns, overhead.as_ref());
            self.hand_over(end(complete_to_ns), self.full_ns.is_none());
        }
    }

    fn hand_over(&mut self, end: WindowEnd, reported: bool) {
        // If there is only one window, it is analysed with all its records, whatever that costs.
        let (most, depth) = match self.full_ns {
            Some(_) if reported => (usize::MAX, Depth::Whole),
            Some(_) => (usize::MAX, self.pacing.depth()),
            None => (self.pacing.events(), self.pacing.depth()),
        };
        let recording = self.recent.ending(end, most);
        log::debug!("analysis of {} of at most {most} events, {depth:?}", recording.events.len());
        self.analysis.answer(Job { recording, cut_by_events: self.recent.is_cut(), depth, reported });
    }

    /// Waits for the last report, unless `skip`.
    pub fn finish(self, skip: bool) {
        self.analysis.finish(skip);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Before a trial's result, `top -p` would name CPUs as the limit of a program with a hot lock.
    #[test]
    fn the_first_report_waits_for_trials_of_locks_for_a_bounded_time() {
        let note = |reason| {
            let kind = NoteKind::Gap { pid: 7, cpu: None, until_ns: 20, lost: 0, reason };
            Note { time_ns: 10, kind }
        };
        let trial = Trial::new(1_000);
        assert!(trial.goes_on(&[], 1_001));
        assert!(trial.goes_on(&[note(GapReason::RingFull), note(GapReason::NotProbed)], 1_001));
        assert!(!trial.goes_on(&[note(GapReason::RingFull), note(GapReason::LibcNotYetProbed)], 1_001));
        assert!(!trial.goes_on(&[note(GapReason::OperationsOff { family: 0, tried: None })], 1_001));
        assert!(!trial.goes_on(&[], 1_000 + LONGEST_TRIAL_NS));
    }
}
