//! Spin locks known from samples only: which thread held one while others spun for it (a method of longpole's own).
//!
//! A stretch of spinning in a loop that tries to take a lock ends when the holder releases the lock. So one thread held the
//! lock up to then, at least since the other arrived, and the other holds it from then on. On average, a thread arrives in
//! the middle of a hold. So the hold is assumed to begin as long before the arrival as it lasted after it. But it begins not
//! before the thread began to compute or got the lock, or while another thread held it.
//!
//! A hold lies in one stretch of plain computing, without waits or recorded operations. So the holder always releases the
//! lock, and as simulated locks these cannot deadlock. Which thread gets a lock first is open, as in the program, and a
//! thread that loses its CPU with the lock held makes others spin. All loops of a process count as one lock.

use super::spins::{Mark, MarkKind};
use rustc_hash::FxHashMap;

/// The end of a stretch of spinning for a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct HandOver {
    /// Times at which the lock was released, at which the waiter continued, and at which it had begun to spin, ns.
    pub(in crate::program) given: u64,
    pub(in crate::program) taken: u64,
    pub(in crate::program) begun: u64,
    /// Indices of the threads in the timeline.
    pub(in crate::program) holder: usize,
    pub(in crate::program) waiter: usize,
    pub(in crate::program) pid: u32,
}

/// Stretches of plain computing of a thread, ascending: begin and end, ns.
pub(super) type Spans = Vec<(u64, u64)>;

#[derive(Clone, Copy, Debug, Default)]
struct State {
    /// Everything before is decided.
    until: u64,
    /// Time at which the thread last got the lock, if that has no mark yet, ns.
    got: Option<u64>,
}

/// Acquisitions and releases of sampled spin locks, by thread.
#[derive(Debug, Default)]
pub(super) struct SpinLocks {
    pub(in crate::program) marks: Vec<(usize, Mark)>,
    /// The process of each lock.
    pub(in crate::program) pids: Vec<u32>,
}

/// Whether a thread computes without interruption until this time, so that it may have held a lock.
pub(super) fn computes_up_to(spans: &Spans, time: u64) -> bool {
    before(spans, time).is_some()
}

impl SpinLocks {
    pub(in crate::program) fn of(mut all: Vec<HandOver>, spans: &[&Spans]) -> SpinLocks {
        all.sort_unstable();
        let mut found = SpinLocks::default();
        let mut free_at: FxHashMap<u32, u64> = FxHashMap::default();
        let mut states = vec![State::default(); spans.len()];
        for over in &all {
            let Some(span) = spans.get(over.holder).and_then(|spans| before(spans, over.given)) else {
                continue;
            };
            let lock = found.lock(over.pid);
            let free = free_at.entry(over.pid).or_default();
            if let Some(state) = states.get_mut(over.holder) {
                let middle = over.begun.min(over.given);
                let since =
                    middle.saturating_sub(over.given - middle).max(span.0).max(state.until).max(*free);
                if since < over.given {
                    let got = state.got.take().filter(|got| *got < since);
                    state.until = over.given;
                    found.touch(over.holder, lock, got);
                    found.mark(over.holder, since, MarkKind::Take(lock));
                    found.mark(over.holder, over.given, MarkKind::Give(lock));
                }
            }
            *free = (*free).max(over.given);
            let Some(state) = states.get_mut(over.waiter).filter(|state| state.until < over.taken) else {
                continue;
            };
            state.until = over.taken;
            let got = state.got.replace(over.taken);
            found.touch(over.waiter, lock, got);
        }
        let pids: FxHashMap<usize, u32> = all.iter().map(|over| (over.waiter, over.pid)).collect();
        for (thread, state) in states.iter().enumerate() {
            let lock = pids.get(&thread).map_or(0, |pid| found.lock(*pid));
            found.touch(thread, lock, state.got);
        }
        found
    }

    fn lock(&mut self, pid: u32) -> u32 {
        let known = self.pids.iter().position(|known| *known == pid);
        let number = known.unwrap_or_else(|| {
            self.pids.push(pid);
            self.pids.len() - 1
        });
        u32::try_from(number).unwrap_or(u32::MAX)
    }

    fn mark(&mut self, thread: usize, time: u64, kind: MarkKind) {
        self.marks.push((thread, Mark { time, kind }));
    }

    /// Marks that the thread got the lock; how long it held it is not known.
    fn touch(&mut self, thread: usize, lock: u32, got: Option<u64>) {
        if let Some(time) = got {
            self.mark(thread, time, MarkKind::Touch(lock));
        }
    }
}

/// The stretch of computing that contains the time just before an instant.
fn before(spans: &Spans, time: u64) -> Option<(u64, u64)> {
    let next = spans.partition_point(|(from, _)| *from < time);
    spans.get(next.checked_sub(1)?).copied().filter(|(_, to)| time <= *to)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn over(begun: u64, given: u64, holder: usize, waiter: usize) -> HandOver {
        HandOver { given, taken: given, begun, holder, waiter, pid: 1 }
    }

    fn of(thread: usize, locks: &SpinLocks) -> Vec<(u64, MarkKind)> {
        let mut marks: Vec<Mark> =
            locks.marks.iter().filter(|(of, _)| *of == thread).map(|(_, mark)| *mark).collect();
        marks.sort_unstable();
        marks.iter().map(|mark| (mark.time, mark.kind)).collect()
    }

    #[test]
    fn a_spin_lock_that_two_threads_wait_for_is_taken_in_turns() {
        let spans = [vec![(0, 100), (200, 300)], vec![(100, 200), (300, 400)]];
        let spans: Vec<&Spans> = spans.iter().collect();
        let all = vec![over(20, 100, 0, 1), over(110, 200, 1, 0), over(210, 300, 0, 1)];
        let locks = SpinLocks::of(all, &spans);
        let (take, give) = (MarkKind::Take(0), MarkKind::Give(0));
        assert_eq!(of(0, &locks), [(0, take), (100, give), (200, take), (300, give)]);
        assert_eq!(of(1, &locks), [(100, take), (200, give), (300, MarkKind::Touch(0))]);
        assert_eq!(locks.pids, [1]);
    }

    /// A lock that is rarely waited for is not held all the time in between.
    #[test]
    fn a_spin_lock_is_held_no_longer_than_its_waiter_shows() {
        let spans = [vec![(0, 10_000)], vec![(0, 5_000), (5_010, 10_000)]];
        let spans: Vec<&Spans> = spans.iter().collect();
        let locks = SpinLocks::of(vec![over(5_000, 5_010, 0, 1)], &spans);
        assert_eq!(of(0, &locks), [(4_990, MarkKind::Take(0)), (5_010, MarkKind::Give(0))]);
        assert_eq!(of(1, &locks), [(5_010, MarkKind::Touch(0))]);
    }

    /// Each estimated spin lock is taken before it is released, and no thread holds two.
    #[test]
    fn a_thread_never_holds_two_estimated_spin_locks() {
        for seed in 0..200 {
            let mut numbers = crate::synth::Numbers::new(seed);
            let spans: Vec<Spans> = (0..4)
                .map(|_| {
                    let mut from = 0;
                    (0..30)
                        .map(|_| {
                            from += 1 + numbers.below(20);
                            let to = from + 1 + numbers.below(30);
                            (std::mem::replace(&mut from, to), to)
                        })
                        .collect()
                })
                .collect();
            let all = (0..200).map(|_| {
                let given = numbers.below(800);
                let (holder, waiter) = (numbers.below(4) as usize, numbers.below(4) as usize);
                let begun = given.saturating_sub(numbers.below(50));
                HandOver { given, taken: given + numbers.below(9), begun, holder, waiter, pid: 1 }
            });
            let all = all.filter(|over| over.holder != over.waiter).collect();
            let locks = SpinLocks::of(all, &spans.iter().collect::<Vec<_>>());
            for thread in 0..4 {
                let mut has = None;
                for (_, kind) in of(thread, &locks) {
                    match kind {
                        MarkKind::Take(lock) => assert_eq!(has.replace(lock), None, "seed {seed}"),
                        MarkKind::Give(lock) => assert_eq!(has.take(), Some(lock), "seed {seed}"),
                        _ => assert_eq!(has, None, "seed {seed}"),
                    }
                }
                assert_eq!(has, None, "seed {seed}");
            }
        }
    }

    #[test]
    fn a_thread_that_did_not_compute_held_no_spin_lock() {
        let spans = [vec![(0, 50)], vec![(100, 200)]];
        let spans: Vec<&Spans> = spans.iter().collect();
        assert!(!computes_up_to(spans[0], 100) && computes_up_to(spans[0], 50));
        let locks = SpinLocks::of(vec![over(0, 100, 0, 1)], &spans);
        assert!(locks.marks.is_empty());
    }
}
