//! Threads that were woken for nothing (a method of longpole's own): after the wake-up they waited for the same thing
//! again, and in between only took and released the mutex.

use crate::event::SyncObject;
use crate::program::lock_replay::Nesting;
use crate::timeline::{LockOperation, NO_OBJECT, State, Timeline, WaitReason, Wake};
use rustc_hash::{FxHashMap, FxHashSet};

/// Longest running time of a mere check between two waits, nanoseconds. Without recorded operations the limit is lower, since
/// the thread may have done a small task.
const LOOK_NS: u64 = 10_000;
const RECORDED_LOOK_NS: u64 = 50_000;
/// Wake-ups by one thread that follow each other within this time are from one call, nanoseconds.
const CALL_NS: u64 = 20_000;
/// Without recorded operations, a call that wakes at least this number of threads is taken to wake all.
const ALL: usize = 3;

/// For each thread of the timeline and wait: CPU time that a wake-up for nothing took from waker and wakee,
/// nanoseconds.
#[derive(Clone, Debug, Default)]
pub(super) struct ForNothing(FxHashMap<(usize, usize), u64>);

/// A condition wait that ended.
#[derive(Clone, Copy)]
struct Ended {
    number: usize,
    /// Beginning of the operation around the wait.
    operation: Option<u64>,
    /// Running time of the thread until the end of the wait, ns.
    ran: u64,
    wakeup: u32,
}

/// The place of a wake-up in the call that made it.
#[derive(Clone, Copy, Default)]
struct Call {
    /// Time since the call's wake-up before, nanoseconds.
    after_ns: u64,
    /// Number of threads that the call woke in total.
    of: usize,
}

impl ForNothing {
    pub(super) fn of(timeline: &Timeline, nesting: &Nesting) -> ForNothing {
        let calls = calls(timeline);
        let at_once = at_once(timeline);
        let mut all = ForNothing::default();
        for (index, thread) in timeline.threads.iter().enumerate() {
            let mut ended: FxHashMap<(bool, u64), Ended> = FxHashMap::default();
            let mut ran = 0u64;
            for (start, end, state) in thread.spans() {
                let number = match state {
                    State::Running { .. } => {
                        ran = ran.saturating_add(end.0.saturating_sub(start.0));
                        continue;
                    }
                    State::Blocked(number) => number,
                    _ => continue,
                };
                let Some(wait) = thread.waits.get(number as usize) else { continue };
                let used = nesting.operation(timeline, index, number);
                let WaitReason::Futex(futex) = wait.reason else {
                    ended.clear();
                    continue;
                };
                let (thing, operation) = match used {
                    Some(used) if is_condition(timeline, used) => {
                        ((true, u64::from(used.object)), Some(used.began.0))
                    }
                    // The wait is for the mutex.
                    Some(_) => continue,
                    // A condition variable has two neighbouring words.
                    None => ((false, futex.word & !7), None),
                };
                let last = ended.get(&thing).copied();
                // A further wait inside the same operation is for the mutex.
                if last.is_some_and(|last| operation.is_some() && last.operation == operation) {
                    continue;
                }
                if let Some(last) = last {
                    let look = ran.saturating_sub(last.ran);
                    let call = calls.get(last.wakeup as usize).copied().unwrap_or_default();
                    let is_for_nothing = match operation {
                        Some(began) => look <= RECORDED_LOOK_NS && at_once.contains(&(index, began)),
                        None => look <= LOOK_NS && call.of >= ALL,
                    };
                    if is_for_nothing {
                        all.0.insert((index, last.number), look.saturating_add(call.after_ns));
                    }
                }
                match wait.wake {
                    Wake::By(wakeup) => {
                        ended.insert(thing, Ended { number: number as usize, operation, ran, wakeup });
                    }
                    _ => {
                        ended.remove(&thing);
                    }
                }
            }
        }
        all
    }

    /// CPU time that a wake-up for nothing took, ns; `None`: the wake-up was not for nothing.
    pub(super) fn ns(&self, place: (usize, usize)) -> Option<u64> {
        self.0.get(&place).copied()
    }
}

fn is_condition(timeline: &Timeline, used: &LockOperation) -> bool {
    let lock = timeline.locks.get(used.object as usize);
    used.object != NO_OBJECT && lock.is_some_and(|lock| lock.kind == SyncObject::Condition)
}

/// Waits for conditions that directly follow a wait for the same condition: index of the thread, and beginning of the
/// wait.
fn at_once(timeline: &Timeline) -> FxHashSet<(usize, u64)> {
    let mut last: FxHashMap<u32, u32> = FxHashMap::default();
    let mut all = FxHashSet::default();
    for used in &timeline.lock_operations {
        let is_wait = used.second != NO_OBJECT && is_condition(timeline, used);
        let before = last.insert(used.thread, if is_wait { used.object } else { NO_OBJECT });
        if is_wait && !used.after_hole && before == Some(used.object) {
            all.insert((used.thread as usize, used.began.0));
        }
    }
    all
}

/// For each wake-up: its place in its call.
fn calls(timeline: &Timeline) -> Vec<Call> {
    let mut by_waker: FxHashMap<u32, Vec<usize>> = FxHashMap::default();
    for (number, wakeup) in timeline.wakeups.iter().enumerate() {
        by_waker.entry(wakeup.waker).or_default().push(number);
    }
    let mut calls = vec![Call::default(); timeline.wakeups.len()];
    let time = |number: &usize| timeline.wakeups.get(*number).map_or(0, |wakeup| wakeup.time.0);
    for numbers in by_waker.values() {
        let pieces = pieces(timeline, numbers);
        for (place, (piece, again_ns)) in pieces.iter().enumerate() {
            let (Some(first), Some(last)) = (piece.first(), piece.last()) else { continue };
            // A call that wakes a thread for the second time, no later than it woke the others one after another, is one of many
            // calls that wake one thread each.
            let apart_ns = time(last).saturating_sub(time(first)) / (piece.len() as u64 - 1).max(1);
            let next_ns = pieces.get(place + 1).and_then(|(_, again_ns)| *again_ns);
            let mut again_ns = again_ns.iter().chain(&next_ns);
            let of = if again_ns.any(|ns| *ns <= 2 * apart_ns) { 1 } else { piece.len() };
            let mut before = time(first);
            for number in piece {
                if let Some(call) = calls.get_mut(*number) {
                    *call = Call { after_ns: time(number).saturating_sub(before), of };
                }
                before = time(number);
            }
        }
    }
    calls
}

/// The wake-ups of one waker in pieces that follow each other within [`CALL_NS`] and wake each thread once. With each piece, how
/// long after the piece before it begins, nanoseconds, if only a thread that was woken again divides them.
fn pieces(timeline: &Timeline, numbers: &[usize]) -> Vec<(Vec<usize>, Option<u64>)> {
    let mut pieces: Vec<(Vec<usize>, Option<u64>)> = Vec::new();
    let mut woken: FxHashSet<u32> = FxHashSet::default();
    let mut before = None;
    for number in numbers {
        let Some(wakeup) = timeline.wakeups.get(*number) else { continue };
        let after_ns = before.replace(wakeup.time.0).map(|before| wakeup.time.0.saturating_sub(before));
        let near_ns = after_ns.filter(|after_ns| *after_ns <= CALL_NS);
        match pieces.last_mut() {
            Some((piece, _)) if near_ns.is_some() && !woken.contains(&wakeup.wakee) => piece.push(*number),
            _ => {
                woken.clear();
                pieces.push((vec![*number], near_ns));
            }
        }
        woken.insert(wakeup.wakee);
    }
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::FutexFact;
    use crate::time::Timestamp;
    use crate::timeline::{Interval, Thread, Wait, Wakeup};

    const ROUNDS: u32 = 10;

    /// Threads wait for one word and run for `ran_ns` after each wake-up. One thread wakes them in turn, every
    /// `apart_ns`.
    fn for_nothing(threads: u32, ran_ns: u64, apart_ns: u64) -> (usize, u64) {
        for_nothing_in(1_000_000, threads, ran_ns, apart_ns)
    }

    /// The same with rounds of this length.
    fn for_nothing_in(round_ns: u64, threads: u32, ran_ns: u64, apart_ns: u64) -> (usize, u64) {
        let time = |round: u32, number: u32| u64::from(round + 1) * round_ns + u64::from(number) * apart_ns;
        let all = (0..ROUNDS).flat_map(|round| (0..threads).map(move |number| (round, number)));
        let wakeup = |(round, number)| Wakeup {
            time: Timestamp(time(round, number)),
            waker: 0,
            wakee: number + 1,
            ended: Some(round),
        };
        let wakeups = all.map(wakeup).collect();
        let thread = |number: u32| {
            let wait = |wake| Wait {
                reason: WaitReason::Futex(FutexFact { word: 0x100, ..FutexFact::default() }),
                wake,
                cut_at_start: false,
                moved_to: None,
                from_now: false,
            };
            let interval = |start, state| Interval { start: Timestamp(start), state, first_step: 0 };
            let running = State::Running { cpu: Some(0) };
            let rounds = (0..ROUNDS).flat_map(|round| {
                let woken = time(round, number);
                [interval(woken, running), interval(woken + ran_ns, State::Blocked(round + 1))]
            });
            let waits = (0..ROUNDS).map(|round| wait(Wake::By(round * threads + number)));
            Thread {
                tid: number + 2,
                end: Timestamp(time(ROUNDS, 0)),
                intervals: std::iter::once(interval(0, State::Blocked(0))).chain(rounds).collect(),
                waits: waits.chain([wait(Wake::CutAtEnd)]).collect(),
                ..Thread::default()
            }
        };
        let waker = Thread { tid: 1, ..Thread::default() };
        let threads = std::iter::once(waker).chain((0..threads).map(thread)).collect();
        let timeline = Timeline { threads, wakeups, ..Timeline::default() };
        let found = ForNothing::of(&timeline, &Nesting::of(&timeline));
        (found.0.len(), found.0.values().sum())
    }

    #[test]
    fn threads_woken_together_that_do_nothing_are_woken_for_nothing() {
        // Each ran for 3 µs, and waking the second and the third took 2 µs of the waker.
        assert_eq!(for_nothing(3, 3_000, 2_000), (30, 30 * 3_000 + 20 * 2_000));
        assert_eq!(for_nothing(3, 30_000, 2_000), (0, 0), "they had something to do");
        assert_eq!(for_nothing(3, 3_000, 300_000), (0, 0), "one at a time, with little to do");
        assert_eq!(for_nothing(2, 3_000, 2_000), (0, 0), "two wake-ups may be of two calls");
        assert_eq!(for_nothing_in(8_000, 4, 3_000, 2_000), (0, 0), "each is woken for a task of its own");
        assert_eq!(for_nothing_in(18_000, 4, 3_000, 2_000).0, 40, "all are woken for each task, soon again");
    }
}
