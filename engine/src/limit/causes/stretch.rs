//! Finds the longest stretch in which one thread computes alone, and threads that take turns.

use crate::experiment::ComputePart;
use crate::program::{FunctionRef, ThreadId};
use crate::schedule::{Interval, SimulatedState};
use rustc_hash::FxHashMap;

/// Collects when threads compute, from the simulation's intervals.
#[derive(Debug, Default)]
pub(in crate::limit) struct Computing {
    /// Intervals of computing: thread, start, end, ticks.
    parts: Vec<(u32, u64, u64)>,
    /// For each thread: the index of its last interval in `parts`.
    last: Vec<Option<usize>>,
    /// A pause up to this length, ticks, does not end a part.
    pause: u64,
}

/// A stretch of time in which one thread computes alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::limit) struct Stretch {
    pub(in crate::limit) thread: usize,
    /// Computing of the thread in this stretch, ticks.
    pub(in crate::limit) length: u64,
    /// Computing of the thread before this stretch, ticks.
    pub(in crate::limit) before: u64,
}

impl Stretch {
    /// The stretch as a part of the thread's computing: all of it, or only what counts for `function`.
    pub(in crate::limit) fn part(self, function: Option<FunctionRef>) -> ComputePart {
        let to = self.before.saturating_add(self.length);
        ComputePart { thread: self.thread, from: self.before, to, function }
    }
}

/// Threads that take turns: two of them hardly ever compute at the same time, and none waits for a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::limit) struct Turns {
    /// Number of threads that together compute nearly all of the time in which only one thread computes.
    pub(in crate::limit) threads: usize,
    /// How often the computing thread changes.
    pub(in crate::limit) changes: u64,
    /// Time in which the busiest thread computes alone, ticks.
    pub(in crate::limit) most: u64,
    /// Time in which any thread computes alone, summed, ticks.
    pub(in crate::limit) all: u64,
}

/// Threads take turns if exactly one thread computes for at least this share of the run.
const ALONE: f64 = 0.9;
/// The threads that take turns compute this share of the time with one computing thread; other threads are ignored.
const NEARLY_ALL: f64 = 0.95;
/// Least number of changes for turns. With fewer changes, a user can examine each stretch by itself.
const CHANGES: u64 = 20;

/// In up to this part of a stretch, other threads may compute, or all threads may be idle: an instant of another thread
/// does not end the stretch.
const OTHERS: f64 = 0.02;

impl Computing {
    pub(in crate::limit) fn new(threads: usize, pause: u64) -> Computing {
        Computing { parts: Vec::new(), last: vec![None; threads], pause }
    }

    pub(in crate::limit) fn tell(&mut self, interval: Interval) {
        if !matches!(interval.doing, SimulatedState::Busy) {
            return;
        }
        let ThreadId(thread) = interval.thread;
        let Some(last) = self.last.get_mut(thread as usize) else { return };
        if let Some(part) = last.and_then(|place| self.parts.get_mut(place))
            && interval.start.0.saturating_sub(part.2) <= self.pause
        {
            part.2 = interval.end.0;
            return;
        }
        *last = Some(self.parts.len());
        self.parts.push((thread, interval.start.0, interval.end.0));
    }

    /// The longest stretch, and the turns if threads take turns; `length` is the length of the run in ticks.
    pub(in crate::limit) fn found(self, length: u64) -> (Option<Stretch>, Option<Turns>) {
        let alone = self.alone();
        (self.longest(&alone), turns(&alone, length))
    }

    fn longest(&self, parts: &[(u32, u64, u64)]) -> Option<Stretch> {
        let mut alone: Option<(u32, u64, u64, u64)> = None;
        let mut best = alone;
        for &(thread, start, end) in parts {
            let length = end - start;
            alone = match alone {
                // Other threads' computing or idle time in between is short compared with the stretch.
                Some((own, from, sum, _))
                    if own == thread
                        && ((end - from) - (sum + length)) as f64 <= OTHERS * (end - from) as f64 =>
                {
                    Some((own, from, sum + length, end))
                }
                Some((own, _, sum, _)) if own != thread && length as f64 <= OTHERS * sum as f64 => alone,
                _ => Some((thread, start, length, end)),
            };
            if alone.map(|alone| alone.2) > best.map(|best| best.2) {
                best = alone;
            }
        }
        let (thread, from, length, _) = best?;
        let before = self.parts.iter().filter(|(other, _, _)| *other == thread);
        let before = before.map(|(_, start, end)| (*end).min(from).saturating_sub(*start)).sum();
        Some(Stretch { thread: thread as usize, length, before })
    }

    /// The intervals in which exactly one thread computes (thread, start, end), in order of time.
    fn alone(&self) -> Vec<(u32, u64, u64)> {
        let mut changes: Vec<(u64, bool, u32)> = Vec::with_capacity(2 * self.parts.len());
        for &(thread, start, end) in &self.parts {
            changes.push((start, true, thread));
            changes.push((end, false, thread));
        }
        changes.sort_unstable();
        let mut alone: Vec<(u32, u64, u64)> = Vec::new();
        // `sum` adds the numbers of the computing threads: with one such thread it is that thread's number.
        let (mut count, mut sum, mut since) = (0u32, 0u64, 0u64);
        for (time, begins, thread) in changes {
            if count == 1 && time > since {
                match (alone.last_mut(), u32::try_from(sum)) {
                    (Some(last), Ok(own)) if last.0 == own && last.2 == since => last.2 = time,
                    (_, Ok(own)) => alone.push((own, since, time)),
                    _ => {}
                }
            }
            if begins {
                count += 1;
                sum += u64::from(thread);
            } else {
                count -= 1;
                sum -= u64::from(thread);
            }
            since = time;
        }
        alone
    }
}

/// The turns in a stretch of `length` ticks. `alone`: intervals in which exactly one thread computes, in order of time.
fn turns(alone: &[(u32, u64, u64)], length: u64) -> Option<Turns> {
    let mut by_thread: FxHashMap<u32, u64> = FxHashMap::default();
    for (thread, start, end) in alone {
        *by_thread.entry(*thread).or_insert(0) += end - start;
    }
    let mut sums: Vec<u64> = by_thread.into_values().collect();
    sums.sort_unstable_by_key(|sum| std::cmp::Reverse(*sum));
    let all: u64 = sums.iter().sum();
    let changes = alone.windows(2).filter(|pair| pair[0].0 != pair[1].0).count() as u64;
    let mut counted = 0u64;
    let is_of_them = |sum: &&u64| {
        let missing = (counted as f64) < NEARLY_ALL * all as f64;
        counted += **sum;
        missing
    };
    let threads = sums.iter().take_while(is_of_them).count();
    let is_alone = all as f64 >= ALONE * length as f64;
    (is_alone && threads > 1 && changes >= CHANGES).then_some(Turns {
        threads,
        changes,
        most: sums.first().copied().unwrap_or(0),
        all,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::Ticks;

    fn longest(parts: &[(u32, u64, u64)]) -> Option<(usize, u64, u64)> {
        let stretch = found(parts).0;
        stretch.map(|stretch| (stretch.thread, stretch.length, stretch.before))
    }

    fn found(parts: &[(u32, u64, u64)]) -> (Option<Stretch>, Option<Turns>) {
        let mut computing = Computing::new(3, 0);
        for &(thread, start, end) in parts {
            computing.tell(Interval {
                thread: ThreadId(thread),
                start: Ticks(start),
                end: Ticks(end),
                doing: SimulatedState::Busy,
                cpu: None,
            });
        }
        computing.found(parts.iter().map(|part| part.2).max().unwrap_or(0))
    }

    /// Two threads that yield until it is their turn compute one at a time.
    #[test]
    fn threads_take_turns_if_two_hardly_ever_compute_at_once() {
        let rounds: Vec<(u32, u64, u64)> =
            (0..20).flat_map(|at| [(0, 30 * at, 30 * at + 20), (1, 30 * at + 20, 30 * at + 30)]).collect();
        assert_eq!(found(&rounds).1, Some(Turns { threads: 2, changes: 39, most: 400, all: 600 }));
        let with_rest = [rounds.clone(), vec![(2, 600, 610)]].concat();
        assert_eq!(found(&with_rest).1.map(|turns| turns.threads), Some(2));
        assert_eq!(found(&rounds[..20]).1, None, "so few are stretches");
        let meanwhile = [rounds.clone(), vec![(2, 0, 300)]].concat();
        assert_eq!(found(&meanwhile).1, None, "half of the time another one computes, too");
        assert_eq!(found(&[(0, 0, 1000)]).1, None);
    }

    #[test]
    fn the_longest_serial_stretch_is_found() {
        assert_eq!(longest(&[]), None);
        assert_eq!(longest(&[(0, 0, 1000)]), Some((0, 1000, 0)));
        // First alone, then three at once, then the first again.
        let parts = [(0, 0, 500), (1, 500, 1500), (2, 500, 1500), (0, 1500, 2200)];
        assert_eq!(longest(&parts), Some((0, 700, 500)));
        // An instant of another thread does not end the stretch.
        let parts = [(0, 0, 500), (1, 500, 505), (0, 505, 1000)];
        assert_eq!(longest(&parts), Some((0, 995, 0)));
    }

    #[test]
    fn a_stretch_in_which_others_compute_is_not_serial() {
        let parts = [(0, 0, 1000), (1, 100, 900), (2, 100, 900)];
        let (_, length, _) = longest(&parts).expect("a stretch");
        assert!(length <= 200, "{length}");
    }
}
