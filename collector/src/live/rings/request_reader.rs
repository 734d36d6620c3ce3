//! Reads the counts of requests over sockets for a live window.

use super::source::EventSource;
use engine::event::Requests;
use std::time::{Duration, Instant};

/// Shortest time between two reads.
const EVERY: Duration = Duration::from_secs(1);
/// The time between two reads is at least this many times as long as a read takes: many CPUs and many ports have many sums.
const TIMES: u32 = 500;

/// Decides when the counts are read.
#[derive(Debug, Default)]
pub(super) struct RequestReader {
    /// The next read; `None`: at once.
    due: Option<Instant>,
}

impl RequestReader {
    /// The requests since the start of the recording, if it is time to read them and they are counted.
    pub(super) fn read(&mut self, source: &mut dyn EventSource) -> Option<Requests> {
        let began = Instant::now();
        if self.due.is_some_and(|due| began < due) {
            return None;
        }
        let requests = source.requests();
        self.due = began.checked_add(EVERY.max(began.elapsed().saturating_mul(TIMES)));
        requests
    }
}
