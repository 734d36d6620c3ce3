//! How often other work than taking records is done: it costs CPU time that the program may want.

use std::time::{Duration, Instant};

/// Names and counts are not needed before a recording ends; on a live screen they are wanted soon.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PollIntervals {
    /// Names are not read before this, from the start on.
    first: Duration,
    /// Reading names takes at most one part in this many of the time.
    share: u32,
    /// Between two looks at the counters of loss and cost, which take some system calls.
    pub counts: Duration,
    /// Between two checks whether processes are alive: mostly records report their end.
    pub alive: Duration,
}

impl PollIntervals {
    /// For a live screen.
    pub const WATCHED: PollIntervals = PollIntervals {
        first: Duration::ZERO,
        share: 20,
        counts: Duration::from_millis(250),
        alive: Duration::from_millis(250),
    };
    /// The end is what counts. In a long recording some names are read before, so that the end does not take long and a
    /// recording that is cut short has most of them.
    pub const RECORDED: PollIntervals = PollIntervals {
        first: Duration::from_secs(60),
        share: 500,
        counts: Duration::from_secs(1),
        alive: Duration::from_secs(1),
    };

    /// When names may be read first.
    pub fn first(self, now: Instant) -> Instant {
        now + self.first
    }

    /// When names may be read again, now that they have been read since `began`.
    pub fn again(self, began: Instant) -> Instant {
        Instant::now() + began.elapsed().saturating_mul(self.share)
    }
}
