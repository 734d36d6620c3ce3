//! The data that clients can read: the newest report, and nothing older.

use crate::present::json::report::LiveStretch;
use crate::tui::{LiveCounts, Snapshot};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

/// Written by the main loop and read by the server. Both hold its lock only while they copy some numbers.
#[derive(Clone)]
pub struct Board(Arc<Mutex<Now>>);

/// The newest data.
#[derive(Clone, Default)]
pub(super) struct Now {
    /// Name of the target; not yet safe for terminals or HTML.
    pub subject: String,
    /// The newest report with the stretch of time that it covers, once there is a report.
    pub report: Option<(Arc<Snapshot>, LiveStretch)>,
    /// Number of reports so far.
    pub number: u64,
    /// Counts since the start.
    pub counts: LiveCounts,
    /// The target has ended.
    pub has_ended: bool,
}

impl Board {
    /// An empty board.
    pub fn new(subject: String) -> Board {
        Board(Arc::new(Mutex::new(Now { subject, ..Now::default() })))
    }

    /// Sets the newest report, which was just made.
    pub fn show(&self, snapshot: Arc<Snapshot>) {
        let stretch = stretch(&snapshot);
        self.change(|now| {
            now.report = Some((snapshot, stretch));
            now.number += 1;
        });
    }

    /// Sets the newest counts.
    pub fn count(&self, counts: LiveCounts) {
        self.change(|now| now.counts = counts);
    }

    /// Notes that the target has ended; the last report stays.
    pub fn end(&self) {
        self.change(|now| now.has_ended = true);
    }

    pub(super) fn now(&self) -> Now {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn change(&self, change: impl FnOnce(&mut Now)) {
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

/// The stretch that a report is about; the report was just made.
pub fn stretch(snapshot: &Snapshot) -> LiveStretch {
    let since_1970 = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let ended = since_1970.saturating_sub(snapshot.took);
    LiveStretch {
        end_unix_ms: u64::try_from(ended.as_millis()).unwrap_or(u64::MAX),
        length_ns: snapshot.window_ns,
        threads: snapshot.threads,
        is_shortened: snapshot.cut_by_events,
    }
}
