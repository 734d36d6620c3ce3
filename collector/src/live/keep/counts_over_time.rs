//! Losses and costs over time, so that a part of a recording gets only those of its own time.

use engine::event::{LossCounts, Overhead, WindowEnd};
use std::collections::VecDeque;

/// Counts since the start of the recording, each with the time from which the count holds.
#[derive(Clone, Debug)]
pub struct CountsOverTime {
    /// Start of the recording (nanoseconds).
    start_ns: u64,
    /// Lost records; the first entry holds at the start of the kept part. Never empty.
    losses: VecDeque<(u64, LossCounts)>,
    /// Costs of recording, each with its time like the counts.
    costs: VecDeque<(u64, Overhead)>,
}

impl CountsOverTime {
    /// Zero counts.
    pub fn new(start_ns: u64) -> CountsOverTime {
        CountsOverTime {
            start_ns,
            losses: VecDeque::from([(start_ns, LossCounts::default())]),
            costs: VecDeque::from([(start_ns, Overhead::default())]),
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

    /// Forgets counts that only a part with an earlier start would need.
    pub fn forget_before(&mut self, start_ns: u64) {
        while self.losses.get(1).is_some_and(|(from_ns, _)| *from_ns <= start_ns) {
            self.losses.pop_front();
        }
        while self.costs.get(1).is_some_and(|(from_ns, _)| *from_ns <= start_ns) {
            self.costs.pop_front();
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
            requests: end.requests.filter(|_| is_all),
            others: end.others.filter(|_| is_all),
            ..end
        }
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
    use engine::event::{KernelLocks, SampleCounts};

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
