//! Spin locks that only samples know: who had one while others span for it. **Ours.**
//!
//! A stretch of spinning in a loop that tries to take a lock ends when the one who has it gives it back. That says, of two
//! threads, that one had the lock up to then and that the other has it from then on: how long, nothing says but the next
//! stretch that ends by it. So the lock is held from when the thread got it, as far as that is seen, else from when it began
//! to compute, until the next one gets it. A hold lies in one stretch of plain computing: no wait and no recorded operation is
//! in it, so that whoever has a lock gives it back, whatever others do: replayed as locks they cannot make a deadlock.
//! Who gets a lock first is open, as it is in the program; and a thread that loses its CPU with the lock lets others spin.
//!
//! All loops of a process count as one lock, as long as no two threads are seen with it at once: then they are two.

use super::spins::{Mark, MarkKind};

/// A stretch of spinning for a lock was over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct HandOver {
    /// When it was given back, and when the next one went on, ns.
    pub(super) given: u64,
    pub(super) taken: u64,
    /// Which threads, by their numbers in the timeline.
    pub(super) holder: usize,
    pub(super) waiter: usize,
    pub(super) pid: u32,
}

/// Stretches of plain computing of a thread, ascending: from and to, ns.
pub(super) type Spans = Vec<(u64, u64)>;

/// A lock: whose, and since when it is free.
#[derive(Clone, Copy, Debug)]
struct Lock {
    pid: u32,
    free_at: u64,
}

#[derive(Clone, Copy, Debug, Default)]
struct State {
    /// All up to then is decided.
    until: u64,
    /// A lock that the thread got, and when: until when it had it is not known yet.
    has: Option<(u32, u64)>,
    /// The lock that it gave back last.
    gave: Option<u32>,
}

/// Who takes and gives back which lock, by thread.
#[derive(Debug, Default)]
pub(super) struct SpinLocks {
    pub(super) marks: Vec<(usize, Mark)>,
    /// The process of each lock.
    pub(super) pids: Vec<u32>,
}

/// Whether a thread computes plainly up to this instant, so that it can have had a lock.
pub(super) fn computes_up_to(spans: &Spans, time: u64) -> bool {
    before(spans, time).is_some()
}

impl SpinLocks {
    pub(super) fn of(mut all: Vec<HandOver>, spans: &[&Spans]) -> SpinLocks {
        all.sort_unstable();
        let mut found = SpinLocks::default();
        let mut locks: Vec<Lock> = Vec::new();
        let mut states = vec![State::default(); spans.len()];
        for over in &all {
            let Some(span) = spans.get(over.holder).and_then(|spans| before(spans, over.given)) else {
                continue;
            };
            let Some(state) = states.get_mut(over.holder) else { continue };
            let known = state.has.take();
            let had = known.filter(|(_, since)| span.0 <= *since && *since < over.given);
            if had.is_none() {
                found.touch(over.holder, known);
            }
            let earliest = span.0.max(state.until);
            let lock = match had {
                // Two got on at one instant: one lock was given back.
                None if earliest >= over.given => match state.gave {
                    Some(lock) => lock,
                    None => continue,
                },
                had => {
                    let (lock, since) =
                        had.unwrap_or_else(|| free_lock(&mut locks, over.pid, earliest, over.given));
                    (state.until, state.gave) = (over.given, Some(lock));
                    found.mark(over.holder, since, MarkKind::Take(lock));
                    found.mark(over.holder, over.given, MarkKind::Give(lock));
                    lock
                }
            };
            if let Some(lock) = locks.get_mut(lock as usize) {
                lock.free_at = over.taken.max(over.given);
            }
            if let Some(state) = states.get_mut(over.waiter) {
                let known = state.has.replace((lock, over.taken));
                state.until = state.until.max(over.taken);
                found.touch(over.waiter, known);
            }
        }
        for (thread, state) in states.iter().enumerate() {
            found.touch(thread, state.has);
        }
        found.pids = locks.iter().map(|lock| lock.pid).collect();
        found
    }

    fn mark(&mut self, thread: usize, time: u64, kind: MarkKind) {
        self.marks.push((thread, Mark { time, kind }));
    }

    /// It got the lock; for how long nothing says.
    fn touch(&mut self, thread: usize, has: Option<(u32, u64)>) {
        if let Some((lock, time)) = has {
            self.mark(thread, time, MarkKind::Touch(lock));
        }
    }
}

/// The stretch in which a thread computes before an instant, up to it at least.
fn before(spans: &Spans, time: u64) -> Option<(u64, u64)> {
    let next = spans.partition_point(|(from, _)| *from < time);
    spans.get(next.checked_sub(1)?).copied().filter(|(_, to)| time <= *to)
}

/// A lock of the process that can have been taken from `earliest` on, and from when; one that nobody has used is made if all
/// others were in use up to `given`.
fn free_lock(locks: &mut Vec<Lock>, pid: u32, earliest: u64, given: u64) -> (u32, u64) {
    let own = (0u32..).zip(locks.iter()).filter(|(_, lock)| lock.pid == pid && lock.free_at < given);
    if let Some((number, lock)) = own.min_by_key(|(number, lock)| (lock.free_at > earliest, *number)) {
        return (number, earliest.max(lock.free_at));
    }
    locks.push(Lock { pid, free_at: earliest });
    (u32::try_from(locks.len() - 1).unwrap_or(u32::MAX), earliest)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn over(given: u64, holder: usize, waiter: usize) -> HandOver {
        HandOver { given, taken: given, holder, waiter, pid: 1 }
    }

    fn of(thread: usize, locks: &SpinLocks) -> Vec<(u64, MarkKind)> {
        let mut marks: Vec<Mark> =
            locks.marks.iter().filter(|(of, _)| *of == thread).map(|(_, mark)| *mark).collect();
        marks.sort_unstable();
        marks.iter().map(|mark| (mark.time, mark.kind)).collect()
    }

    #[test]
    fn a_lock_goes_back_and_forth() {
        let spans = [vec![(0, 100), (200, 300)], vec![(100, 200), (300, 400)]];
        let spans: Vec<&Spans> = spans.iter().collect();
        let locks = SpinLocks::of(vec![over(100, 0, 1), over(200, 1, 0), over(300, 0, 1)], &spans);
        let (take, give) = (MarkKind::Take(0), MarkKind::Give(0));
        assert_eq!(of(0, &locks), [(0, take), (100, give), (200, take), (300, give)]);
        assert_eq!(of(1, &locks), [(100, take), (200, give), (300, MarkKind::Touch(0))]);
        assert_eq!(locks.pids, [1]);
    }

    #[test]
    fn what_two_threads_have_at_once_are_two_locks() {
        let spans = [vec![(0, 100)], vec![(0, 90)], vec![(90, 300)], vec![(100, 200)], vec![(200, 300)]];
        let spans: Vec<&Spans> = spans.iter().collect();
        // Thread 2 has the lock of thread 1 from 90 to 250, thread 3 another one from 100 to 200.
        let locks =
            SpinLocks::of(vec![over(90, 1, 2), over(100, 0, 3), over(200, 3, 4), over(250, 2, 4)], &spans);
        assert_eq!(locks.pids.len(), 2, "{locks:?}");
    }

    /// Each is taken before it is given back, and no thread has two.
    #[test]
    fn holds_of_a_thread_follow_each_other_whatever_was_seen() {
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
                HandOver { given, taken: given + numbers.below(9), holder, waiter, pid: 1 }
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
    fn who_did_not_compute_had_nothing() {
        let spans = [vec![(0, 50)], vec![(100, 200)]];
        let spans: Vec<&Spans> = spans.iter().collect();
        assert!(!computes_up_to(spans[0], 100) && computes_up_to(spans[0], 50));
        let locks = SpinLocks::of(vec![over(100, 0, 1)], &spans);
        assert!(locks.marks.is_empty());
    }
}
