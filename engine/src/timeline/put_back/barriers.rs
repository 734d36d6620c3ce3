//! Estimates (puts back) barriers without probes, from the waits for them. (This method is longpole's own.) The last
//! thread to arrive at a barrier does not wait: it wakes all others. A word is a barrier if each of its threads either
//! waits or wakes in each round. Then all arrivals and their times are known, and the simulation decides again which
//! thread arrives last.

use super::super::model::{FirstUse, Lock, LockOperation, Timeline, Wake};
use super::clock::Clock;
use super::futex_words::sleeps;
use super::lock_samples::Calls;
use super::write::{operation, put};
use crate::event::SyncObject;
use crate::finding::Finding;
use crate::time::Timestamp;
use probe_abi::{SyncFamily, SyncOperation};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::{BTreeMap, BTreeSet};

/// Percentage of rounds that must have all threads. In the other rounds, a thread came just before the last one and did
/// not sleep.
const WHOLE_PERCENT: usize = 90;
/// Fewer rounds may be a coincidence.
const FEWEST_ROUNDS: usize = 4;
/// Return value of a barrier in one thread, here in the last one: `PTHREAD_BARRIER_SERIAL_THREAD`.
const SERIAL: i32 = -1;

/// A wait that another thread ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Ended {
    /// Time at which the wait was ended, ns.
    woken_ns: u64,
    waker: u32,
    thread: u32,
    began_ns: u64,
    /// Time at which the thread was on a CPU again, ns.
    ran_ns: u64,
}

/// One use of a barrier: all threads arrive, and the last one wakes those that wait.
#[derive(Clone, Debug)]
struct Round {
    last: u32,
    /// Times at which the last thread woke the first and the last waiter, ns.
    from_ns: u64,
    until_ns: u64,
    /// For each thread: its wait.
    waits: BTreeMap<u32, Ended>,
}

/// A word that is a barrier.
struct Barrier {
    pid: u32,
    address: u64,
    threads: BTreeSet<u32>,
    rounds: Vec<Round>,
}

/// Puts back the uses of all words that are barriers.
pub(super) fn put_back(timeline: &mut Timeline, calls: &Calls, clocks: &[Clock]) {
    let words = waits(timeline, calls);
    let all = words.len();
    let barriers: Vec<Barrier> = words.into_iter().filter_map(barrier).collect();
    if barriers.is_empty() {
        return;
    }
    if barriers.len() == all {
        // All waits for barriers are known: none is missing.
        let is_off = |finding: &Finding| matches!(finding, Finding::OperationsOff { family, .. } if family == SyncFamily::Barrier.name());
        timeline.findings.retain(|finding| !is_off(finding));
    }
    write(timeline, &barriers, clocks);
}

/// The ended waits for each futex word for which a thread was sampled in a barrier function, in order of their ends.
fn waits(timeline: &Timeline, calls: &Calls) -> BTreeMap<(u32, u64), Vec<Ended>> {
    let mut words: FxHashMap<(u32, u64), Vec<Ended>> = FxHashMap::default();
    let mut barriers: FxHashSet<(u32, u64)> = FxHashSet::default();
    for slept in sleeps(timeline) {
        if slept.stack.is_some_and(|stack| calls.is_barrier(stack)) {
            barriers.insert(slept.key);
        }
        let Wake::By(wakeup) = slept.wait.wake else { continue };
        let Some(wakeup) = timeline.wakeups.get(wakeup as usize) else { continue };
        words.entry(slept.key).or_default().push(Ended {
            woken_ns: wakeup.time.0,
            waker: wakeup.waker,
            thread: slept.index,
            began_ns: slept.start_ns,
            ran_ns: slept.ran_ns,
        });
    }
    words.retain(|key, _| barriers.contains(key));
    words.values_mut().for_each(|waits| waits.sort_unstable());
    words.into_iter().collect()
}

/// The barrier that these waits belong to, if enough rounds have all threads.
fn barrier(((pid, address), waits): ((u32, u64), Vec<Ended>)) -> Option<Barrier> {
    let threads: BTreeSet<u32> = waits.iter().flat_map(|wait| [wait.thread, wait.waker]).collect();
    let mut began: FxHashMap<u32, Vec<u64>> = FxHashMap::default();
    for wait in &waits {
        began.entry(wait.thread).or_default().push(wait.began_ns);
    }
    let waits_between = |thread: u32, from_ns: u64, until_ns: u64| {
        let began = began.get(&thread).map_or(&[][..], Vec::as_slice);
        let next = began.partition_point(|began_ns| *began_ns <= from_ns);
        began.get(next).is_some_and(|began_ns| *began_ns <= until_ns)
    };
    let mut rounds: Vec<Round> = Vec::new();
    for wait in waits {
        let is_of = |round: &&mut Round| {
            round.last == wait.waker
                && !round.waits.contains_key(&wait.thread)
                && !waits_between(round.last, round.from_ns, wait.woken_ns)
        };
        match rounds.last_mut().filter(is_of) {
            Some(round) => {
                round.until_ns = wait.woken_ns;
                round.waits.insert(wait.thread, wait);
            }
            None => rounds.push(Round {
                last: wait.waker,
                from_ns: wait.woken_ns,
                until_ns: wait.woken_ns,
                waits: BTreeMap::from([(wait.thread, wait)]),
            }),
        }
    }
    let is_sound = |round: &Round| !round.waits.contains_key(&round.last);
    let whole = rounds.iter().filter(|round| round.waits.len() + 1 == threads.len()).count();
    let is_barrier = rounds.len() >= FEWEST_ROUNDS
        && whole * 100 >= rounds.len() * WHOLE_PERCENT
        && rounds.iter().all(is_sound);
    is_barrier.then_some(Barrier { pid, address, threads, rounds })
}

/// The barrier operations of a round, each with the interval in which its call returns. `None` if a thread did not run
/// again.
fn uses(
    barrier: &Barrier,
    round: &Round,
    object: u32,
    clocks: &[Clock],
) -> Option<Vec<(LockOperation, usize)>> {
    let used = |&thread: &u32| {
        let (began_ns, ended_ns, outcome) = match round.waits.get(&thread) {
            Some(wait) => (wait.began_ns, wait.ran_ns, 0),
            None if thread == round.last => (round.from_ns, round.until_ns, SERIAL),
            None => (round.from_ns, round.from_ns, 0),
        };
        let (interval, ended_ns) = clocks.get(thread as usize)?.next_run(ended_ns)?;
        let operation = operation(thread, object, SyncOperation::BarrierWait, (began_ns, ended_ns));
        Some((LockOperation { outcome, ..operation }, interval))
    };
    barrier.threads.iter().map(used).collect()
}

fn write(timeline: &mut Timeline, barriers: &[Barrier], clocks: &[Clock]) {
    let first_lock = u32::try_from(timeline.locks.len()).unwrap_or(u32::MAX);
    let mut by_thread: BTreeMap<u32, Vec<(LockOperation, usize)>> = BTreeMap::new();
    for (object, barrier) in (first_lock..).zip(barriers) {
        let waits = barrier.rounds.iter().flat_map(|round| round.waits.values());
        let first = waits.map(|wait| (wait.began_ns, wait.thread)).min().unwrap_or_default();
        timeline.locks.push(Lock {
            pid: barrier.pid,
            address: barrier.address,
            kind: SyncObject::Barrier,
            first: FirstUse { time: Timestamp(first.0), thread: first.1, caller: 0 },
            put_back: true,
        });
        let rounds = barrier.rounds.iter().filter_map(|round| uses(barrier, round, object, clocks));
        rounds.flatten().for_each(|used| by_thread.entry(used.0.thread).or_default().push(used));
    }
    put(timeline, by_thread);
}
