//! What clients can read: the newest report, and nothing older.

use crate::present::json::Stretch;
use crate::tui::{LiveCounts, Snapshot};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

/// Written by the recording loop, read by the server; neither holds it for longer than it takes to copy some
/// numbers.
#[derive(Clone)]
pub struct Board(Arc<Mutex<Now>>);

/// What is known.
#[derive(Clone, Default)]
pub(super) struct Now {
    /// The subject; not cleaned.
    pub subject: String,
    /// The newest report and its stretch, once there is one.
    pub report: Option<(Arc<Snapshot>, Stretch)>,
    /// Reports so far.
    pub number: u64,
    /// Counts since the start.
    pub counts: LiveCounts,
    /// The target has ended.
    pub has_ended: bool,
}

impl Board {
    /// An empty one.
    pub fn new(subject: String) -> Board {
        Board(Arc::new(Mutex::new(Now { subject, ..Now::default() })))
    }

    /// A new report, which was just made.
    pub fn show(&self, snapshot: Arc<Snapshot>) {
        let stretch = stretch(&snapshot);
        self.change(|now| {
            now.report = Some((snapshot, stretch));
            now.number += 1;
        });
    }

    /// New counts.
    pub fn count(&self, counts: LiveCounts) {
        self.change(|now| now.counts = counts);
    }

    /// The target has ended: the last report stays.
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

/// Which stretch a report that was just made is of.
pub fn stretch(snapshot: &Snapshot) -> Stretch {
    let since_1970 = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let ended = since_1970.saturating_sub(snapshot.took);
    Stretch {
        end_unix_ms: u64::try_from(ended.as_millis()).unwrap_or(u64::MAX),
        length_ns: snapshot.window_ns,
        threads: snapshot.threads,
        is_shortened: snapshot.cut_by_events,
    }
}
