//! Turns operations that were recorded as sums ([`probe_abi::Burst`]) back into operations of their threads.
//!
//! They are spread evenly over the time in which the thread ran. Their number, the total time held and the total time
//! not held are as recorded. No other thread held the mutex during a burst, so the order of holders is as recorded,
//! too. For a read-write lock taken for reading, no writer held it.
//!
//! A mutex that one thread alone uses, and a read-write lock that is only read, delay no thread on any number of CPUs.
//! One pair of operations stands for their whole burst ([`LockOperation::times`]). One pair also stands for several
//! above `MOST_PAIRS`.

use super::locks::{Locks, RecordedBurst};
use super::model::{LockOperation, NO_OBJECT, State, Step, StepKind, Thread};
use crate::event::{Effect, SyncObject, meaning};
use crate::time::Timestamp;
use probe_abi::{Burst, OperationFlags, SyncOperation};

/// Largest number of pairs of operations that are made. If there are more, each pair stands for several.
pub(super) const MOST_PAIRS: u64 = 4_000_000;

/// No thread.
const NOBODY: u32 = u32::MAX;

/// Acquisitions in bursts that were too many to be made into operations one by one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Joined {
    /// Acquisitions of locks that several threads use.
    pub(super) acquisitions: u64,
    /// Number of pairs of operations that stand for these acquisitions.
    pub(super) pairs: u64,
}

/// Turns recorded bursts into about `most_pairs` pairs of operations at most.
///
/// `Some` if one pair stands for several acquisitions that a thread might have waited for.
pub(super) fn expand_bursts(threads: &mut [Thread], locks: &mut Locks, most_pairs: u64) -> Option<Joined> {
    if locks.bursts.is_empty() {
        return None;
    }
    let mut bursts = std::mem::take(&mut locks.bursts);
    bursts.sort_by_key(|recorded| (recorded.thread, recorded.burst.header.time_ns));
    let pairs = Pairs::of(&bursts, locks, most_pairs);
    let first_new = locks.lock_operations.len();
    for of_thread in bursts.chunk_by(|a, b| a.thread == b.thread) {
        let Some(thread) = of_thread.first().and_then(|first| threads.get_mut(first.thread as usize)) else {
            continue;
        };
        let made = spread_all(thread, of_thread, &pairs, &mut locks.lock_operations);
        insert(thread, &made);
    }
    number_by_end(threads, &mut locks.lock_operations, first_new);
    pairs.joined(&bursts)
}

/// The number of pairs of operations that each burst becomes.
struct Pairs {
    /// For each object: the only thread that uses it, or [`NOBODY`].
    alone: Vec<u32>,
    /// For each object: whether threads only read with it.
    only_read: Vec<bool>,
    /// Pairs of all bursts on objects of several threads.
    shared: u64,
    /// Largest number of pairs made of these bursts. If there are more bursts than pairs, each burst still gets one
    /// pair.
    most: u64,
}

impl Pairs {
    fn of(bursts: &[RecordedBurst], locks: &Locks, most: u64) -> Pairs {
        let mut users: Vec<Option<u32>> = vec![None; locks.all.len()];
        let mut uses = |object: u32, thread: u32| {
            if let Some(user) = users.get_mut(object as usize) {
                *user = Some(user.filter(|&user| user != thread).map_or(thread, |_| NOBODY));
            }
        };
        for used in &locks.lock_operations {
            uses(used.object, used.thread);
            uses(used.second, used.thread);
        }
        bursts.iter().for_each(|recorded| uses(recorded.object, recorded.thread));
        let alone: Vec<u32> = users.into_iter().map(|user| user.unwrap_or(NOBODY)).collect();
        let mut only_read = vec![true; locks.all.len()];
        for used in locks.lock_operations.iter().filter(|used| !reads(used.operation)) {
            if let Some(only_read) = only_read.get_mut(used.object as usize) {
                *only_read = false;
            }
        }
        let mut pairs = Pairs { alone, only_read, shared: 0, most };
        let shared = bursts.iter().filter(|recorded| !pairs.is_alone(recorded));
        pairs.shared = shared.map(|recorded| u64::from(recorded.burst.count)).sum();
        pairs
    }

    fn is_alone(&self, recorded: &RecordedBurst) -> bool {
        let object = recorded.object as usize;
        self.alone.get(object) == Some(&recorded.thread)
            || recorded.burst.flags & OperationFlags::READS != 0 && self.only_read.get(object) == Some(&true)
    }

    fn for_burst(&self, recorded: &RecordedBurst) -> u64 {
        let count = u64::from(recorded.burst.count);
        if self.is_alone(recorded) {
            count.min(1)
        } else if self.shared <= self.most {
            count
        } else {
            let share = u128::from(count) * u128::from(self.most) / u128::from(self.shared);
            u64::try_from(share).unwrap_or(count).clamp(count.min(1), count)
        }
    }

    fn joined(&self, bursts: &[RecordedBurst]) -> Option<Joined> {
        let shared = bursts.iter().filter(|recorded| !self.is_alone(recorded));
        let pairs = shared.map(|recorded| self.for_burst(recorded)).sum();
        (pairs < self.shared).then_some(Joined { acquisitions: self.shared, pairs })
    }
}

/// Whether a reader may do this to a read-write lock. A writer releases, too, but its acquisition comes before.
fn reads(operation: SyncOperation) -> bool {
    matches!(meaning(operation), (Some(SyncObject::RwLock), Effect::Take { reads: true, .. } | Effect::Give))
}

/// A new step of a thread, and the index of the step's interval.
#[derive(Clone, Copy)]
pub(super) struct Made {
    pub(super) interval: usize,
    pub(super) step: Step,
}

/// A stretch in which the thread ran.
#[derive(Clone, Copy)]
struct Piece {
    interval: usize,
    from_ns: u64,
    until_ns: u64,
}

fn spread_all(
    thread: &Thread,
    bursts: &[RecordedBurst],
    pairs: &Pairs,
    uses: &mut Vec<LockOperation>,
) -> Vec<Made> {
    let mut made: Vec<Made> = Vec::new();
    let mut before_ns = thread.start.0;
    for recorded in bursts {
        let began_ns = recorded.burst.began_ns().max(before_ns);
        let ended_ns = recorded.burst.header.time_ns.max(began_ns).min(thread.end.0.max(began_ns));
        before_ns = ended_ns;
        let pieces = ran(thread, began_ns, ended_ns);
        spread(recorded, &pieces, pairs.for_burst(recorded), uses, &mut made);
    }
    made
}

/// Stretches in which the thread ran between two instants. If it never ran: an empty one at the first instant.
fn ran(thread: &Thread, began_ns: u64, ended_ns: u64) -> Vec<Piece> {
    let first = thread.intervals.partition_point(|interval| interval.start.0 <= began_ns).saturating_sub(1);
    let mut pieces = Vec::new();
    for (number, interval) in thread.intervals.iter().enumerate().skip(first) {
        if interval.start.0 > ended_ns {
            break;
        }
        let end_ns = thread.intervals.get(number + 1).map_or(thread.end, |next| next.start).0;
        let (from_ns, until_ns) = (interval.start.0.max(began_ns), end_ns.min(ended_ns));
        if matches!(interval.state, State::Running { .. }) && from_ns < until_ns {
            pieces.push(Piece { interval: number, from_ns, until_ns });
        }
    }
    if pieces.is_empty() {
        pieces.push(Piece { interval: first, from_ns: began_ns, until_ns: began_ns });
    }
    pieces
}

fn spread(
    recorded: &RecordedBurst,
    pieces: &[Piece],
    pairs: u64,
    uses: &mut Vec<LockOperation>,
    made: &mut Vec<Made>,
) {
    let burst = &recorded.burst;
    let ran_ns: u64 = pieces.iter().map(|piece| piece.until_ns - piece.from_ns).sum();
    let held_ns = u64::from(burst.held_ns).min(ran_ns);
    let (held_ns, apart_ns) = (u128::from(held_ns), u128::from(ran_ns - held_ns));
    let mut pieces = pieces.iter().copied().peekable();
    // Running time of the thread up to the current piece.
    let mut passed_ns = 0;
    let mut place = |ran_ns: u64| -> Option<(usize, Timestamp)> {
        loop {
            let piece = *pieces.peek()?;
            let length_ns = piece.until_ns - piece.from_ns;
            let into_ns = ran_ns.saturating_sub(passed_ns);
            if into_ns <= length_ns {
                return Some((piece.interval, Timestamp(piece.from_ns + into_ns)));
            }
            passed_ns += length_ns;
            pieces.next();
        }
    };
    let count = u64::from(burst.count);
    for pair in 0..pairs {
        let times = count * (pair + 1) / pairs - count * pair / pairs;
        for is_release in [false, true] {
            let held = held_ns * u128::from(pair + u64::from(is_release)) / u128::from(pairs);
            let apart = (apart_ns * u128::from(pair)).checked_div(u128::from(pairs - 1)).unwrap_or(0);
            let Some((interval, time)) = place(u64::try_from(held + apart).unwrap_or(u64::MAX)) else {
                return;
            };
            let used = u32::try_from(uses.len()).unwrap_or(u32::MAX);
            uses.push(LockOperation {
                began: time,
                ended: time,
                value: 0,
                caller: if is_release { burst.released_at() } else { burst.caller },
                thread: recorded.thread,
                object: recorded.object,
                second: NO_OBJECT,
                outcome: 0,
                operation: if is_release { Burst::giving(burst.flags) } else { Burst::taking(burst.flags) },
                flags: if is_release { 0 } else { burst.flags & !OperationFlags::READS },
                after_hole: recorded.after_hole && pair == 0 && !is_release,
                times: u32::try_from(times).unwrap_or(u32::MAX),
            });
            made.push(Made { interval, step: Step { time, kind: StepKind::Operated(used) } });
        }
    }
}

/// Inserts new steps into a thread's steps: each in its interval, after old steps of the same time.
pub(super) fn insert(thread: &mut Thread, made: &[Made]) {
    let old = std::mem::take(&mut thread.steps);
    let mut steps: Vec<Step> = Vec::with_capacity(old.len() + made.len());
    // New index of each old step; at the end, of the position after the last.
    let mut moved: Vec<u32> = Vec::with_capacity(old.len() + 1);
    let number = |steps: &[Step]| u32::try_from(steps.len()).unwrap_or(u32::MAX);
    let (mut next_old, mut next_made) = (0, 0);
    let intervals = thread.intervals.len();
    for interval in 0..intervals {
        let begin = thread.intervals.get(interval).map_or(0, |interval| interval.first_step as usize);
        let end = thread.intervals.get(interval + 1).map_or(old.len(), |next| next.first_step as usize);
        while next_old < begin.min(old.len()) {
            moved.push(number(&steps));
            steps.extend(old.get(next_old));
            next_old += 1;
        }
        if let Some(interval) = thread.intervals.get_mut(interval) {
            interval.first_step = number(&steps);
        }
        loop {
            let own = old.get(next_old).filter(|_| next_old < end);
            let new = made.get(next_made).filter(|made| made.interval <= interval);
            match (own, new) {
                (Some(own), new) if new.is_none_or(|new| own.time <= new.step.time) => {
                    moved.push(number(&steps));
                    steps.push(*own);
                    next_old += 1;
                }
                (_, Some(new)) => {
                    steps.push(new.step);
                    next_made += 1;
                }
                _ => break,
            }
        }
    }
    for own in old.iter().skip(next_old) {
        moved.push(number(&steps));
        steps.push(*own);
    }
    steps.extend(made.iter().skip(next_made).map(|made| made.step));
    moved.push(number(&steps));
    for base in &mut thread.base_stacks {
        base.first_step = moved.get(base.first_step as usize).copied().unwrap_or(number(&steps));
    }
    thread.steps = steps;
}

/// Renumbers all operations by their ends. Operations from `first_new` on come after older ones with the same end.
pub(super) fn number_by_end(threads: &mut [Thread], uses: &mut Vec<LockOperation>, first_new: usize) {
    let is_old = |number: u32| (number as usize) < first_new;
    let mut order: Vec<u32> = (0u32..).take(uses.len()).collect();
    order.sort_by_key(|&number| {
        let ended = uses.get(number as usize).map_or(Timestamp(0), |used| used.ended);
        (ended, !is_old(number), number)
    });
    let mut numbers = vec![0u32; uses.len()];
    for (new, &old) in (0u32..).zip(&order) {
        if let Some(number) = numbers.get_mut(old as usize) {
            *number = new;
        }
    }
    *uses = order.iter().filter_map(|&old| uses.get(old as usize).copied()).collect();
    for step in threads.iter_mut().flat_map(|thread| &mut thread.steps) {
        if let StepKind::Operated(used) = &mut step.kind {
            *used = numbers.get(*used as usize).copied().unwrap_or(*used);
        }
    }
}
