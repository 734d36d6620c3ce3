//! Decides how long the rings of a capture may fill before they are read again. A turn costs the target more than the
//! turn's own time: it starts with cold caches and evicts the target's data. So there are half as many turns where
//! little happens.

use probe_abi::Kind;
use std::time::{Duration, Instant};

/// The pause while threads or programs come and go, or much is recorded.
const USUAL: Duration = Duration::from_millis(50);
/// The pause otherwise.
const QUIET: Duration = Duration::from_millis(100);
/// How long the usual pause is kept after threads or programs have begun or ended, or after code was mapped. More such
/// changes are expected then: new code should soon get probes, and rings should have room for the next threads.
const STIRRED: Duration = Duration::from_secs(1);
/// Largest number of records in a quiet turn.
const RECORDS: usize = 4_096;
/// Bytes of a ring for each record of a quiet turn: with small rings, which a user may choose, fewer records are quiet.
const ROOM_BYTES: usize = 32 * 64;
/// Largest number of samples in a quiet turn: each may be a stack of 16 KiB. A ring holds four times that number, and
/// all may be in one ring.
const SAMPLES: usize = 128;

/// Whether the last turns of a capture were quiet.
#[derive(Debug)]
pub struct PollBackoff {
    /// Largest number of records in a quiet turn.
    records: usize,
    stirred: Instant,
    little: bool,
}

impl PollBackoff {
    /// The backoff of a capture that begins now, with rings of this size.
    pub fn beginning(now: Instant, ring_bytes: usize) -> PollBackoff {
        PollBackoff { records: RECORDS.min(ring_bytes / ROOM_BYTES), stirred: now, little: false }
    }

    /// Whether a record reports a thread or a program that begins or ends.
    pub fn stirs(kind: Kind) -> bool {
        matches!(kind, Kind::Fork | Kind::Exec | Kind::Exit)
    }

    /// Notes that threads or programs have begun or ended, or code was mapped.
    pub fn stir(&mut self, now: Instant) {
        self.stirred = now;
    }

    /// Notes how many records and samples a turn read.
    pub fn turn(&mut self, records: usize, samples: usize) {
        self.little = records <= self.records && samples <= SAMPLES;
    }

    /// Longest pause before the next turn.
    pub fn longest_pause(&self, now: Instant) -> Duration {
        let settled = now.saturating_duration_since(self.stirred) >= STIRRED;
        if settled && self.little { QUIET } else { USUAL }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pause_between_polls_is_longer_only_when_quiet_for_a_second() {
        let began = Instant::now();
        let mut backoff = PollBackoff::beginning(began, 16 << 20);
        let after = |seconds: u64| began + Duration::from_secs(seconds);
        assert_eq!(backoff.longest_pause(after(9)), USUAL, "nothing is known yet");
        backoff.turn(600, 8);
        assert_eq!([0, 1].map(|at| backoff.longest_pause(after(at))), [USUAL, QUIET]);
        backoff.turn(60_000, 0);
        assert_eq!(backoff.longest_pause(after(2)), USUAL);
        backoff.turn(600, 300);
        assert_eq!(backoff.longest_pause(after(2)), USUAL);
        backoff.turn(0, 0);
        backoff.stir(after(3));
        assert_eq!([3, 4].map(|at| backoff.longest_pause(after(at))), [USUAL, QUIET]);
        let mut small = PollBackoff::beginning(began, 64 << 10);
        small.turn(600, 8);
        assert_eq!(small.longest_pause(after(2)), USUAL, "the next turn's might not fit any more");
        assert!(PollBackoff::stirs(Kind::Exec) && !PollBackoff::stirs(Kind::Switch));
    }
}
