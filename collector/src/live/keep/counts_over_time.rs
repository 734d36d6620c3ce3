//! Losses and costs over time, so that a part of a recording gets only those of its own time.

use engine::event::{LossCounts, Overhead, Requests, WindowEnd};
use std::collections::VecDeque;

/// Largest number of kept counts of requests, for any length of the part.
const REQUESTS: usize = 128;

/// Counts since the start of the recording, each with the time from which the count holds.
#[derive(Clone, Debug)]
pub struct CountsOverTime {
    /// Start of the recording (nanoseconds).
    start_ns: u64,
    /// Lost records; the first entry holds at the start of the kept part. Never empty.
    losses: VecDeque<(u64, LossCounts)>,
    /// Costs of recording, each with its time like the counts.
    costs: VecDeque<(u64, Overhead)>,
    /// Requests, each with its time like the counts; empty if they were read only at the end.
    requests: VecDeque<(u64, Requests)>,
}

impl CountsOverTime {
    /// Zero counts.
    pub fn new(start_ns: u64) -> CountsOverTime {
        CountsOverTime {
            start_ns,
            losses: VecDeque::from([(start_ns, LossCounts::default())]),
            costs: VecDeque::from([(start_ns, Overhead::default())]),
            requests: VecDeque::new(),
        }
    }

    /// Adds the counts at a time. `cost` is `None` if it was not read.
    pub fn take(&mut self, time_ns: u64, loss: LossCounts, cost: Option<Overhead>) {
        if self.losses.back().is_none_or(|(_, last)| *last != loss) {
            self.losses.push_back((time_ns, loss));
        }
        if let Some(cost) = cost
            && self.costs.back().is_none_or(|(_, last)| *last != cost)
        {
            self.costs.push_back((time_ns, cost));
        }
    }

    /// Adds the requests at a time. With too many counts, every second one is dropped.
    pub fn take_requests(&mut self, time_ns: u64, requests: &Requests) {
        // Requests that are open now may be answered at the end of a part.
        self.requests.push_back((time_ns, Requests { open: Vec::new(), ..requests.clone() }));
        if self.requests.len() > REQUESTS {
            let mut is_kept = false;
            self.requests.retain(|_| {
                is_kept = !is_kept;
                is_kept
            });
        }
    }

    /// Forgets counts that only a part with an earlier start would need.
    pub fn forget_before(&mut self, start_ns: u64) {
        while self.losses.get(1).is_some_and(|(from_ns, _)| *from_ns <= start_ns) {
            self.losses.pop_front();
        }
        while self.costs.get(1).is_some_and(|(from_ns, _)| *from_ns <= start_ns) {
            self.costs.pop_front();
        }
        let counted_ns = self.requests.back().map_or(0, |(_, last)| last.counted_ns);
        let is_later = |(from_ns, of): &(u64, Requests)| *from_ns <= start_ns && of.counted_ns < counted_ns;
        while self.requests.get(1).is_some_and(is_later) {
            self.requests.pop_front();
        }
    }

    /// The end of a part, with losses and costs from `start_ns` on. Counts that are known only at the end, for the
    /// complete recording, are omitted unless the part is the complete recording.
    pub fn since(&self, start_ns: u64, end: WindowEnd) -> WindowEnd {
        let loss_before = at(&self.losses, start_ns).unwrap_or_default();
        let cost_before = at(&self.costs, start_ns).unwrap_or_default();
        let is_all = start_ns <= self.start_ns;
        WindowEnd {
            loss: end.loss.since(&loss_before),
            overhead: end.overhead.map(|cost| cost.since(&cost_before)),
            samples: end.samples.filter(|_| is_all),
            kernel_locks: end.kernel_locks.filter(|_| is_all),
            requests: self.requests_since(start_ns, end.requests),
            others: end.others.filter(|_| is_all),
            ..end
        }
    }

    /// Requests from `start_ns` on, given those at the end, if they were read there; `None`: not known. If none were counted
    /// since, they are those of the last time before: counting pauses, and a part may be shorter than the time between reads.
    fn requests_since(&self, start_ns: u64, at_end: Option<Requests>) -> Option<Requests> {
        let now = at_end.or_else(|| Some(self.requests.back()?.1.clone()))?;
        if start_ns <= self.start_ns {
            return Some(now);
        }
        let is_before =
            |(from_ns, of): &&(u64, Requests)| *from_ns <= start_ns && of.counted_ns < now.counted_ns;
        let (_, before) = self.requests.iter().rfind(is_before).or(self.requests.front())?;
        Some(now.since(before)).filter(|since| since.counted_ns > 0)
    }

    /// The latest counts.
    pub fn last(&self) -> (LossCounts, Option<Overhead>) {
        let loss = self.losses.back().map(|(_, loss)| *loss).unwrap_or_default();
        // The first entry is a default, not a measurement.
        let cost = self.costs.back().map(|(_, cost)| *cost).filter(|cost| *cost != Overhead::default());
        (loss, cost)
    }
}

/// The value that holds at a time; before the first entry, the first value.
fn at<T: Copy>(all: &VecDeque<(u64, T)>, time_ns: u64) -> Option<T> {
    let last = all.iter().rfind(|(from_ns, _)| *from_ns <= time_ns).or(all.front());
    last.map(|(_, value)| *value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use engine::event::{KernelLocks, OpenRequest, RequestSums, SampleCounts};

    #[test]
    fn a_stretch_has_the_losses_and_costs_since_its_start() {
        let loss = |dropped| LossCounts { dropped, ..LossCounts::default() };
        let cost = |hits| Overhead { hits, ..Overhead::default() };
        let mut counts = CountsOverTime::new(10);
        assert_eq!(counts.last(), (loss(0), None));
        counts.take(20, loss(3), Some(cost(5)));
        counts.take(30, loss(3), None);
        counts.take(40, loss(7), Some(cost(9)));
        assert_eq!(counts.last(), (loss(7), Some(cost(9))));
        let in_stretch = |counts: &CountsOverTime, start_ns| {
            let end = WindowEnd { loss: loss(8), overhead: Some(cost(10)), ..WindowEnd::default() };
            let end = counts.since(start_ns, end);
            (end.loss.dropped, end.overhead.map_or(0, |cost| cost.hits))
        };
        assert_eq!(
            [0, 10, 20, 39, 40].map(|start_ns| in_stretch(&counts, start_ns)),
            [(8, 10), (8, 10), (5, 5), (5, 5), (1, 1)]
        );
        counts.forget_before(39);
        assert_eq!(in_stretch(&counts, 39), (5, 5));
    }

    #[test]
    fn a_stretch_has_the_requests_since_its_start() {
        let of = |count, seconds: u64| Requests {
            sums: vec![RequestSums { served: true, port: 80, count, ..RequestSums::default() }],
            counted_ns: seconds * 1_000_000_000,
            open: vec![OpenRequest::default()],
            ..Requests::default()
        };
        let mut counts = CountsOverTime::new(10);
        let in_stretch = |counts: &CountsOverTime, start_ns, at_end| {
            let end = WindowEnd { requests: at_end, ..WindowEnd::default() };
            let requests = counts.since(start_ns, end).requests?;
            Some((requests.sums.first().map_or(0, |sum| sum.count), requests.counted_ns, requests.open.len()))
        };
        assert_eq!(in_stretch(&counts, 20, Some(of(5, 1))), None, "not known how many came before");
        assert_eq!(in_stretch(&counts, 10, Some(of(5, 1))), Some((5, 1_000_000_000, 1)));
        for (time_ns, count, seconds) in [(11, 0, 0), (20, 100, 1), (30, 130, 2), (40, 170, 3)] {
            counts.take_requests(time_ns, &of(count, seconds));
        }
        assert_eq!(in_stretch(&counts, 10, None), Some((170, 3_000_000_000, 0)));
        assert_eq!(in_stretch(&counts, 25, None), Some((70, 2_000_000_000, 0)));
        assert_eq!(in_stretch(&counts, 39, Some(of(175, 4))), Some((45, 2_000_000_000, 1)));
        assert_eq!(in_stretch(&counts, 40, None), Some((40, 1_000_000_000, 0)), "not read since");
        counts.forget_before(39);
        assert_eq!((counts.requests.len(), in_stretch(&counts, 39, None)), (2, Some((40, 1_000_000_000, 0))));
        for time_ns in [50, 60] {
            counts.take_requests(time_ns, &of(170, 3));
            counts.forget_before(time_ns);
        }
        assert_eq!(in_stretch(&counts, 60, None), Some((40, 1_000_000_000, 0)), "in a pause");
        for time_ns in 61..5_000 {
            counts.take_requests(time_ns, &of(200, 5));
        }
        assert!(counts.requests.len() <= REQUESTS);
    }

    /// A part of five seconds must not have the kernel's lock waits of hours.
    #[test]
    fn samples_and_kernel_locks_of_the_whole_recording_belong_to_no_part() {
        let counts = CountsOverTime::new(10);
        let (samples, kernel_locks) = (Some(SampleCounts::default()), Some(KernelLocks::default()));
        for (start_ns, is_all) in [(0, true), (10, true), (11, false)] {
            let end = WindowEnd { samples, kernel_locks: kernel_locks.clone(), ..WindowEnd::default() };
            let end = counts.since(start_ns, end);
            assert_eq!((end.samples.is_some(), end.kernel_locks.is_some()), (is_all, is_all));
        }
    }
}
