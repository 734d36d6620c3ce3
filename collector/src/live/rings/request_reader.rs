//! Reads the counts of requests over sockets, and which files and sockets threads slept for, for a live window.

use super::source::EventSource;
use engine::event::{AwaitedFact, Requests};
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
    /// If it is time to read: the requests since the start of the recording, if they are counted, and what threads have
    /// slept for since then.
    pub(super) fn read(
        &mut self,
        source: &mut dyn EventSource,
    ) -> Option<(Option<Requests>, Vec<AwaitedFact>)> {
        let began = Instant::now();
        if self.due.is_some_and(|due| began < due) {
            return None;
        }
        let read = (source.requests(), source.awaited());
        self.due = began.checked_add(EVERY.max(began.elapsed().saturating_mul(TIMES)));
        Some(read)
    }
}
