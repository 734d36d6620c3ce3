//! How often the threads do work other than reading rings: that work costs CPU time that the program may need.

use std::time::{Duration, Instant};

/// Intervals of other work: a recording needs names and counts at its end, a live screen soon.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PollIntervals {
    /// Time from the start to the first reading of names.
    first: Duration,
    /// Reading names takes at most this fraction (one part in `share`) of the elapsed time.
    share: u32,
    /// Time between two reads of the loss and cost counters, which take some system calls.
    pub counts: Duration,
    /// Time between two checks whether processes are alive: usually a record reports their end.
    pub alive: Duration,
}

impl PollIntervals {
    /// Intervals for a live screen.
    pub const WATCHED: PollIntervals = PollIntervals {
        first: Duration::ZERO,
        share: 20,
        counts: Duration::from_millis(250),
        alive: Duration::from_millis(250),
    };
    /// Intervals for a recording, which needs names at its end. A long recording reads some names earlier, so that its
    /// end does not take long, and a recording that is broken off has most names.
    pub const RECORDED: PollIntervals = PollIntervals {
        first: Duration::from_secs(60),
        share: 500,
        counts: Duration::from_secs(1),
        alive: Duration::from_secs(1),
    };

    /// Time at which names may be read for the first time.
    pub fn first(self, now: Instant) -> Instant {
        now + self.first
    }

    /// Time at which names may be read again, if the reading that ends now started at `began`.
    pub fn again(self, began: Instant) -> Instant {
        Instant::now() + began.elapsed().saturating_mul(self.share)
    }
}
