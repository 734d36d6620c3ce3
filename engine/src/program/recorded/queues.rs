//! Convoys: the number of threads that waited for a lock together, their order, the holder, and the end.

use super::model::Queue;
use super::threads::Context;
use crate::program::lock_replay::Sections;
use crate::timeline::Timeline;
use rustc_hash::FxHashMap;

/// One access of a thread to a lock: it arrives, gets the lock, and releases it.
#[derive(Clone, Copy, Debug)]
struct Turn {
    thread: u32,
    came: u64,
    got: u64,
    gave: u64,
}

/// The longest queue of each lock that had one, by the lock's index.
pub(super) fn longest(timeline: &Timeline, sections: &Sections, context: &Context<'_>) -> Vec<(u32, Queue)> {
    let mut turns: FxHashMap<u32, Vec<Turn>> = FxHashMap::default();
    for section in &sections.all {
        let came = section.from.saturating_sub(section.waited);
        let turn = Turn { thread: section.thread, came, got: section.from, gave: section.to };
        turns.entry(section.object).or_default().push(turn);
    }
    let mut all: Vec<(u32, Queue)> = turns
        .into_iter()
        .filter_map(|(object, turns)| {
            let found = worst(&turns)?;
            Some((object, found.queue(&turns, timeline.start.0, context)))
        })
        .collect();
    all.sort_by_key(|(object, _)| *object);
    all
}

/// A stretch of time during which at least one thread waited for a lock.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Convoy {
    start: u64,
    end: u64,
    /// Time at which most threads waited, and the waiting turns in order.
    peak: u64,
    waiting: Vec<usize>,
}

/// The convoy with the most threads at a time; of equal ones, the longest.
fn worst(turns: &[Turn]) -> Option<Convoy> {
    // (time, arrives, turn): at one instant, threads leave before others arrive.
    let waited = || turns.iter().enumerate().filter(|(_, turn)| turn.got > turn.came);
    let mut events: Vec<(u64, bool, usize)> =
        waited().flat_map(|(index, turn)| [(turn.came, true, index), (turn.got, false, index)]).collect();
    events.sort_unstable();
    let mut worst: Option<Convoy> = None;
    let mut now = Convoy::default();
    let mut waiting: Vec<usize> = Vec::new();
    for (time, comes, turn) in events {
        if comes {
            if waiting.is_empty() {
                now = Convoy { start: time, ..Convoy::default() };
            }
            waiting.push(turn);
            // A queue shorter than the longest so far need not be remembered.
            let least = worst.as_ref().map_or(0, |worst| worst.waiting.len());
            if waiting.len() > now.waiting.len() && waiting.len() >= least {
                now.peak = time;
                now.waiting.clone_from(&waiting);
            }
            continue;
        }
        waiting.retain(|other| *other != turn);
        if waiting.is_empty() && !now.waiting.is_empty() {
            now.end = time;
            let key = |convoy: &Convoy| (convoy.waiting.len(), convoy.end.saturating_sub(convoy.start));
            if worst.as_ref().is_none_or(|worst| key(&now) > key(worst)) {
                worst = Some(std::mem::take(&mut now));
            }
        }
    }
    worst
}

impl Convoy {
    fn queue(&self, turns: &[Turn], start: u64, context: &Context<'_>) -> Queue {
        // Of several readers, the one that has held the lock longest.
        let holder = turns
            .iter()
            .filter(|turn| turn.got <= self.peak && self.peak < turn.gave)
            .min_by_key(|turn| (turn.got, turn.thread));
        let name = |thread| context.thread(thread).unwrap_or("?").to_owned();
        let waiting = self.waiting.iter().filter_map(|turn| turns.get(*turn));
        Queue {
            waiters: waiting.map(|turn| name(turn.thread)).collect(),
            holder: holder.map(|turn| name(turn.thread)),
            held_ns: holder.map_or(0, |turn| self.peak.saturating_sub(turn.got)),
            start_ns: self.start.saturating_sub(start),
            length_ns: self.end.saturating_sub(self.start),
            dissolved_ns: self.end.saturating_sub(self.peak),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn turn(thread: u32, came: u64, got: u64, gave: u64) -> Turn {
        Turn { thread, came, got, gave }
    }

    #[test]
    fn the_worst_queue_is_the_convoy_with_the_most_threads() {
        let turns = [
            turn(1, 10, 10, 100),
            // Two threads wait behind thread 1, then one thread waits behind thread 2.
            turn(2, 20, 100, 200),
            turn(3, 30, 200, 210),
            // A later convoy is longer, but has only one waiting thread.
            turn(1, 300, 300, 900),
            turn(2, 310, 900, 901),
            // A third convoy has two waiting threads, but is shorter.
            turn(1, 1000, 1000, 1010),
            turn(2, 1001, 1010, 1020),
            turn(3, 1002, 1020, 1030),
        ];
        let worst = worst(&turns).expect("a queue");
        assert_eq!((worst.start, worst.end, worst.peak), (20, 200, 30));
        assert_eq!(worst.waiting, [1, 2]);
    }

    #[test]
    fn a_thread_that_leaves_a_queue_goes_before_one_that_comes() {
        let turns = [turn(1, 0, 0, 10), turn(2, 5, 10, 20), turn(3, 10, 20, 30)];
        let worst = worst(&turns).expect("a queue");
        assert_eq!((worst.waiting.len(), worst.start, worst.end), (1, 10, 20));
        assert_eq!(super::worst(&[turn(1, 0, 0, 10)]), None, "nobody waited");
    }
}
