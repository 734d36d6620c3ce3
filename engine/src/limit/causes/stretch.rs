//! Finds the longest stretch in which one thread computes alone, and threads that take turns.

use crate::cpus::Cpus;
use crate::experiment::{ComputePart, Edit};
use crate::program::{FunctionRef, ThreadId};
use crate::schedule::{Interval, SimulatedState, Why};
use crate::time::Ticks;
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
    /// When any thread spins: start, end, ticks.
    spins: Vec<(u64, u64)>,
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

/// A thread that computes alone again and again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::limit) struct Again {
    pub(in crate::limit) thread: usize,
    /// Number of stretches.
    pub(in crate::limit) times: u64,
    /// Their sum, ticks.
    pub(in crate::limit) length: u64,
    /// The longest ones: computing of the thread before each, and in it, ticks.
    pub(in crate::limit) longest: Vec<(u64, u64)>,
}

/// One thread has this part of all the time in which any thread computes alone.
const ITS_OWN: f64 = 0.7;
/// Fewer stretches are single ones.
const AGAIN: u64 = 4;
/// Number of stretches whose functions are looked at.
const LOOKED_AT: usize = 16;

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
        Computing { parts: Vec::new(), last: vec![None; threads], pause, spins: Vec::new() }
    }

    pub(in crate::limit) fn tell(&mut self, interval: Interval) {
        match interval.doing {
            SimulatedState::Busy => {}
            SimulatedState::Spinning(_) | SimulatedState::Blocked(Why::Turn) => {
                return self.spins.push((interval.start.0, interval.end.0));
            }
            _ => return,
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
    pub(in crate::limit) fn found(self, length: u64) -> (Option<Stretch>, Option<Turns>, Option<Again>) {
        let alone = self.alone();
        (self.longest(&alone), turns(&alone, length), self.again(&alone))
    }

    /// Intervals of computing: thread, start, end, ticks.
    pub(in crate::limit) fn parts(&self) -> impl Iterator<Item = (u32, u64, u64)> {
        self.parts.iter().copied()
    }

    /// What threads compute while another one spins: thread, and from which to which tick of its own computing.
    pub(in crate::limit) fn meanwhile(&mut self) -> Vec<(usize, (u64, u64))> {
        let mut spins: Vec<(u64, u64)> = Vec::new();
        self.spins.sort_unstable();
        for (start, end) in std::mem::take(&mut self.spins) {
            match spins.last_mut() {
                Some(last) if start <= last.1 => last.1 = last.1.max(end),
                _ => spins.push((start, end)),
            }
        }
        let mut before: FxHashMap<u32, u64> = FxHashMap::default();
        let mut meanwhile = Vec::new();
        for &(thread, start, end) in &self.parts {
            let own = before.entry(thread).or_insert(0);
            let first = spins.partition_point(|(_, until)| *until <= start);
            for (from, until) in spins.iter().skip(first).take_while(|(from, _)| *from < end) {
                let at = |time: u64| *own + (time.clamp(start, end) - start);
                meanwhile.push((thread as usize, (at(*from), at(*until))));
            }
            *own = own.saturating_add(end - start);
        }
        meanwhile
    }

    /// The thread that computes alone again and again, if one does so more than all others together.
    fn again(&self, alone: &[(u32, u64, u64)]) -> Option<Again> {
        let mut by_thread: FxHashMap<u32, Vec<(u64, u64)>> = FxHashMap::default();
        for &(thread, start, end) in alone {
            by_thread.entry(thread).or_default().push((start, end));
        }
        let sum = |parts: &[(u64, u64)]| parts.iter().map(|(start, end)| end - start).sum::<u64>();
        let all: u64 = by_thread.values().map(|parts| sum(parts)).sum();
        let (thread, mut parts) =
            by_thread.into_iter().max_by_key(|(thread, parts)| (sum(parts), *thread))?;
        let (length, times) = (sum(&parts), parts.len() as u64);
        if (length as f64) < ITS_OWN * all as f64 || times < AGAIN {
            return None;
        }
        parts.sort_unstable_by_key(|(start, end)| std::cmp::Reverse(end - start));
        parts.truncate(LOOKED_AT);
        let longest =
            parts.into_iter().map(|(start, end)| (self.computed_before(thread, start), end - start));
        Some(Again { thread: thread as usize, times, length, longest: longest.collect() })
    }

    /// Computing of the thread before an instant, ticks.
    fn computed_before(&self, thread: u32, at: u64) -> u64 {
        let own = self.parts.iter().filter(|(other, _, _)| *other == thread);
        own.map(|(_, start, end)| (*end).min(at).saturating_sub(*start)).sum()
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
        Some(Stretch { thread: thread as usize, length, before: self.computed_before(thread, from) })
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

/// Predicted time, nanoseconds, if the longest stretch that one thread computes alone were divided among all CPUs.
pub(in crate::limit) fn without_stretch(cpus: Cpus, stretch: Stretch, time_ns: f64) -> (Edit, f64) {
    let among = cpus.or(usize::MAX);
    let alone_ns = Ticks(stretch.length).as_ns_f64() * (1.0 - 1.0 / among as f64);
    (Edit::Divide(stretch.part(None), among), time_ns - alone_ns)
}

/// The least time without turns, nanoseconds: the busiest thread's computing, or all computing spread over all CPUs.
pub(in crate::limit) fn without_turns(cpus: Cpus, turns: &Turns) -> f64 {
    let shared = match cpus {
        Cpus::Count(count) => turns.all / u64::from(count.get()),
        Cpus::Infinite => 0,
    };
    Ticks(turns.most.max(shared)).as_ns_f64()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn longest(parts: &[(u32, u64, u64)]) -> Option<(usize, u64, u64)> {
        let stretch = found(parts).0;
        stretch.map(|stretch| (stretch.thread, stretch.length, stretch.before))
    }

    fn found(parts: &[(u32, u64, u64)]) -> (Option<Stretch>, Option<Turns>, Option<Again>) {
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

    /// A thread that reads a batch alone, then waits while two others compute it.
    #[test]
    fn stretches_that_come_again_are_summed_for_the_thread_that_has_most() {
        let round = |at: u64| {
            [
                (0, 100 * at, 100 * at + 60),
                (1, 100 * at + 60, 100 * at + 100),
                (2, 100 * at + 60, 100 * at + 99),
            ]
        };
        let rounds: Vec<(u32, u64, u64)> = (0..5).flat_map(round).collect();
        let again = found(&rounds).2.expect("five stretches");
        assert_eq!((again.thread, again.times, again.length), (0, 5, 300));
        assert!(again.longest.contains(&(120, 60)), "{again:?}");
        assert_eq!(found(&rounds[..9]).2, None, "three are single ones");
        let even: Vec<(u32, u64, u64)> = (0..20).map(|at| ((at % 2) as u32, 10 * at, 10 * at + 10)).collect();
        assert_eq!(found(&even).2, None, "both compute alone");
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

    /// The third thread spins while the first one computes, and once while the second one does.
    #[test]
    fn what_threads_compute_while_another_one_spins_is_found() {
        let mut computing = Computing::new(3, 0);
        let mut tell = |thread, start, end, doing| {
            let interval =
                Interval { thread: ThreadId(thread), start: Ticks(start), end: Ticks(end), doing, cpu: None };
            computing.tell(interval);
        };
        let spins = SimulatedState::Blocked(Why::Turn);
        tell(0, 0, 100, SimulatedState::Busy);
        tell(1, 0, 20, SimulatedState::Busy);
        tell(0, 200, 300, SimulatedState::Busy);
        for (start, end) in [(10, 30), (250, 400), (240, 260)] {
            tell(2, start, end, spins);
        }
        assert_eq!(computing.meanwhile(), [(0, (10, 30)), (1, (10, 20)), (0, (140, 200))]);
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
