//! The number of threads on CPUs over time: merges all threads' intervals in memory of one entry for each thread.

use crate::time::Timestamp;
use crate::timeline::{State, Thread, Timeline};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Instants at which the number of threads on CPUs changes, with the new number; the first is the window's start.
#[derive(Debug)]
pub struct Running<'a> {
    threads: &'a [Thread],
    /// Each thread's next change: time, thread, interval, and whether the thread leaves a CPU.
    next: BinaryHeap<Reverse<(Timestamp, usize, usize, bool)>>,
    count: u32,
    start: Option<Timestamp>,
}

impl<'a> Running<'a> {
    pub(super) fn of(timeline: &'a Timeline) -> Running<'a> {
        let mut running = Running {
            threads: &timeline.threads,
            next: BinaryHeap::new(),
            count: 0,
            start: Some(timeline.start),
        };
        for thread in 0..timeline.threads.len() {
            running.push(thread, 0);
        }
        running
    }

    /// Queues the thread's next stretch on a CPU, from this interval on.
    fn push(&mut self, thread: usize, from: usize) {
        let intervals = self.threads.get(thread).map_or(&[][..], |thread| thread.intervals.as_slice());
        let found = intervals.iter().enumerate().skip(from).find(|(_, interval)| is_on_cpu(interval.state));
        if let Some((place, interval)) = found {
            self.next.push(Reverse((interval.start, thread, place, false)));
        }
    }

    fn change(&mut self, (_, thread, interval, leaves): (Timestamp, usize, usize, bool)) {
        if leaves {
            self.count = self.count.saturating_sub(1);
            self.push(thread, interval);
            return;
        }
        self.count = self.count.saturating_add(1);
        let Some(of) = self.threads.get(thread) else { return };
        let mut after = of.intervals.iter().enumerate().skip(interval + 1);
        let next = after.find(|(_, next)| !is_on_cpu(next.state));
        let (place, end) = next.map_or((of.intervals.len(), of.end), |(place, next)| (place, next.start));
        self.next.push(Reverse((end, thread, place, true)));
    }
}

fn is_on_cpu(state: State) -> bool {
    matches!(state, State::Running { .. })
}

impl Iterator for Running<'_> {
    type Item = (Timestamp, u32);

    fn next(&mut self) -> Option<(Timestamp, u32)> {
        let begin = self.start.take();
        loop {
            let before = self.count;
            let time = match (begin, self.next.peek()) {
                (Some(start), Some(Reverse((first, ..)))) if *first > start => return Some((start, 0)),
                (Some(start), None) => return Some((start, 0)),
                (_, Some(Reverse((first, ..)))) => *first,
                (None, None) => return None,
            };
            while let Some(Reverse(change)) = self.next.peek().copied().filter(|Reverse(next)| next.0 == time)
            {
                self.next.pop();
                self.change(change);
            }
            if self.count != before || begin.is_some() {
                return Some((time, self.count));
            }
        }
    }
}
