//! Decides when requests are counted: all the time if that is cheap, else in stretches, so that it costs little.

/// Share of one CPU that counting requests may cost.
const SHARE: f64 = 0.004;
/// The shortest stretch, nanoseconds. Requests that are longer than a stretch are missed.
const LEAST_NS: u64 = 1_000_000_000;
/// The longest pause, nanoseconds.
const MOST_NS: u64 = 10_000_000_000;

/// The alternation of stretches in which requests are counted, and pauses.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RequestWatch {
    /// Time at which the present stretch or pause began (`CLOCK_MONOTONIC` nanoseconds).
    since_ns: u64,
    /// The cost of counting up to that time, nanoseconds.
    cost_ns: u64,
    /// The length of the present pause, nanoseconds; 0: requests are being counted.
    pause_ns: u64,
    /// The length of all earlier stretches, nanoseconds.
    counted_ns: u64,
    /// The number of earlier stretches.
    stretches: u64,
}

impl RequestWatch {
    /// Begins the first stretch.
    pub(crate) fn begin(now_ns: u64) -> RequestWatch {
        RequestWatch { since_ns: now_ns, ..RequestWatch::default() }
    }

    /// Whether requests are to be counted from now on, or no longer; `None`: as before. `cost_ns`: the cost so far.
    pub(crate) fn look(&mut self, now_ns: u64, cost_ns: u64) -> Option<bool> {
        let passed_ns = now_ns.saturating_sub(self.since_ns);
        if self.pause_ns > 0 {
            if passed_ns < self.pause_ns {
                return None;
            }
            self.stretches += 1;
            *self = RequestWatch { since_ns: now_ns, cost_ns, pause_ns: 0, ..*self };
            return Some(true);
        }
        let spent_ns = cost_ns.saturating_sub(self.cost_ns) as f64;
        if passed_ns < LEAST_NS || spent_ns <= SHARE * passed_ns as f64 {
            return None;
        }
        let pause_ns = (spent_ns / SHARE) as u64 - passed_ns;
        self.counted_ns = self.counted_ns.saturating_add(passed_ns);
        *self = RequestWatch { since_ns: now_ns, pause_ns: pause_ns.clamp(1, MOST_NS), ..*self };
        Some(false)
    }

    /// Whether requests are not counted at present.
    pub(crate) fn is_paused(&self) -> bool {
        self.pause_ns > 0
    }

    /// Number of the present stretch of counting.
    pub(crate) fn stretch(&self) -> u64 {
        self.stretches
    }

    /// Number of pauses in counting.
    pub(crate) fn pauses(&self) -> u64 {
        self.stretches.saturating_add(u64::from(self.pause_ns > 0))
    }

    /// Total time for which requests have been counted until now, nanoseconds.
    pub(crate) fn counted_ns(&self, now_ns: u64) -> u64 {
        let this_ns = if self.pause_ns > 0 { 0 } else { now_ns.saturating_sub(self.since_ns) };
        self.counted_ns.saturating_add(this_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cheap_requests_are_counted_all_the_time() {
        let mut watch = RequestWatch::begin(1_000);
        for look in 1..100u64 {
            let now_ns = 1_000 + look * LEAST_NS;
            assert_eq!(watch.look(now_ns, look * LEAST_NS / 300), None);
            assert_eq!(watch.counted_ns(now_ns), look * LEAST_NS);
        }
    }

    #[test]
    fn expensive_requests_are_counted_in_stretches_within_their_share() {
        let (mut watch, mut is_on, mut cost_ns, mut changes) = (RequestWatch::begin(0), true, 0u64, 0);
        let (step_ns, all_ns) = (100_000_000u64, 300_000_000_000u64);
        for now_ns in (step_ns..=all_ns).step_by(step_ns as usize) {
            if is_on {
                cost_ns += step_ns / 50;
            }
            if let Some(on) = watch.look(now_ns, cost_ns) {
                assert_ne!(on, is_on);
                (is_on, changes) = (on, changes + 1);
            }
        }
        let share = cost_ns as f64 / all_ns as f64;
        assert!(share < SHARE * 1.2 && share > SHARE / 2.0 && changes > 10, "{share} {changes}");
        assert_eq!(watch.counted_ns(all_ns), cost_ns * 50);
        assert!(watch.stretch() > 5);
    }
}
