//! Computes how much of a thread's running time probe hits took, so that it can be subtracted.
//!
//! A hit lies around its record's time: the trap comes before it, the rest of the kernel program and the return after
//! it. So the hits in a running stretch show which part of it is the thread's own. (This method is longpole's own.) The
//! result is as exact as the known cost of a hit, which was measured on longpole's own functions with warm caches. If a
//! hit in the program costs more, the difference stays in the compute time. If it costs less, a stretch becomes too
//! short, but never negative. Hits without a record (folded recursion, calls below the depth limit, functions whose
//! probes were being removed) are not known one by one and are not subtracted.

use crate::time::Timestamp;
use crate::timeline::model::Hit;

/// Walks along a thread's running stretches, in order of time.
#[derive(Clone, Debug, Default)]
pub struct ProbeTime<'a> {
    /// Hits not yet passed.
    hits: &'a [Hit],
    /// Time of the hits at the end of the last stretch, and the time that they take after it.
    rest: Option<(Timestamp, u64)>,
}

impl<'a> ProbeTime<'a> {
    /// Starts before the first hit; `hits` are in order of time.
    pub fn new(hits: &'a [Hit]) -> ProbeTime<'a> {
        ProbeTime { hits, rest: None }
    }

    /// Nanoseconds that hits took from the running stretch between `from` and `until`; at most the stretch's length.
    ///
    /// Calls must be in order of time.
    pub fn within(&mut self, from: Timestamp, until: Timestamp) -> u64 {
        let length = until.0.saturating_sub(from.0);
        if length == 0 {
            return 0;
        }
        let mut taken = match self.rest.take() {
            Some((time, after)) if time >= from => after,
            _ => 0,
        };
        while let Some((hit, later)) = self.hits.split_first().filter(|(hit, _)| hit.time <= until) {
            self.hits = later;
            if hit.time > from {
                taken = taken.saturating_add(u64::from(hit.before_ns));
            }
            if hit.time == until {
                let (_, after) = self.rest.get_or_insert((until, 0));
                *after = after.saturating_add(u64::from(hit.after_ns));
            } else if hit.time >= from {
                taken = taken.saturating_add(u64::from(hit.after_ns));
            }
        }
        taken.min(length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hit(time: u64, before_ns: u32, after_ns: u32) -> Hit {
        Hit { time: Timestamp(time), before_ns, after_ns }
    }

    fn taken(hits: &[Hit], stretches: &[(u64, u64)]) -> Vec<u64> {
        let mut probes = ProbeTime::new(hits);
        stretches.iter().map(|&(from, until)| probes.within(Timestamp(from), Timestamp(until))).collect()
    }

    #[test]
    fn a_probe_hit_s_cost_is_taken_on_both_sides_of_its_record() {
        let hits = [hit(100, 10, 20), hit(200, 1, 2)];
        assert_eq!(taken(&hits, &[(0, 100), (100, 200), (200, 300)]), [10, 21, 2]);
        assert_eq!(taken(&hits, &[(0, 150), (150, 300)]), [30, 3]);
        assert_eq!(taken(&hits, &[(0, 300)]), [33]);
        // Steps at one time make stretches without length.
        assert_eq!(taken(&hits, &[(0, 100), (100, 100), (100, 300)]), [10, 0, 23]);
    }

    #[test]
    fn a_probe_hit_s_cost_is_not_taken_where_the_thread_did_not_run() {
        let hits = [hit(100, 10, 20), hit(500, 10, 20)];
        // The thread is off its CPU from 100 to 150, and at 500.
        assert_eq!(taken(&hits, &[(0, 100), (150, 400), (600, 700)]), [10, 0, 0]);
        assert_eq!(taken(&[], &[(0, 100)]), [0]);
    }

    #[test]
    fn a_probe_hit_s_cost_takes_no_more_than_the_stretch_has() {
        let hits = [hit(5, u32::MAX, u32::MAX), hit(6, u32::MAX, u32::MAX), hit(6, 1, 1)];
        assert_eq!(taken(&hits, &[(0, 6), (6, 10), (10, 20)]), [6, 4, 0]);
    }
}
