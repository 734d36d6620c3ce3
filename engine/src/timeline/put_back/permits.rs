//! Estimates (puts back) bounded resources without probes, from the waits for them: a pool of connections or a limit of
//! requests, built from a semaphore or from a condition variable with a count. (This method is longpole's own.)
//!
//! A thread that waited for such a word has a permit from the wake-up that ended its wait until it wakes the next
//! thread. While threads wait, all permits are in use, and never more. If threads pass on work by a word, this does not
//! hold: their wakers do not wait themselves.

use super::super::model::{FirstUse, Lock, LockOperation, PutBack, Timeline, Wake};
use super::clock::Clock;
use super::futex_words::{sleeps, word};
use super::lock_samples::Calls;
use super::write::{operation, put};
use crate::event::SyncObject;
use crate::time::Timestamp;
use probe_abi::SyncOperation;
use rustc_hash::FxHashSet;
use std::collections::BTreeMap;

/// Least number of complete uses: with fewer, the length of a use is unknown and may be a coincidence.
const FEWEST: usize = 16;
/// Percentage of wake-ups that must be by threads that wait there, too.
const BY_USERS_PERCENT: usize = 90;
/// Of the time with waiting threads: least share with all permits in use, and largest share with more in use. Permits
/// taken without a wait are estimated, so the number is not exact.
const ALL_IN_USE: f64 = 0.75;
const MORE_IN_USE: f64 = 0.05;
/// Least sum of all waits, as a share of the recording's length.
const LEAST_WAITED: f64 = 0.02;
/// A thread that waits again within this fraction (1/8) of the usual length got no permit: another thread was faster.
const TRIES_AGAIN: u64 = 8;

/// Process and address of a word.
type Key = (u32, u64);

/// A word that is a bounded resource.
pub(super) struct Resource {
    key: Key,
    first: (u64, u32),
    permits: u64,
    /// For each thread: its uses in order of time.
    uses: BTreeMap<u32, Vec<Use>>,
}

/// A thread has a permit for some time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Use {
    from_ns: u64,
    until_ns: u64,
    waited: Option<Waited>,
    /// Whether the thread woke the next thread at `until_ns`.
    woke: bool,
}

/// A wait of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Waited {
    began_ns: u64,
    /// Time at which another thread woke the waiting one, ns.
    woken_ns: Option<u64>,
    ran_ns: u64,
}

/// A thread's waits and wake-ups at a word, each in order of time.
#[derive(Default)]
struct Marks {
    waits: Vec<Waited>,
    wakes: Vec<u64>,
}

#[derive(Default)]
struct Word {
    first: Option<(u64, u32)>,
    threads: BTreeMap<u32, Marks>,
    /// Waker and wakee of each wake-up.
    handed: Vec<(u32, u32)>,
}

/// The bounded resources without recorded operations.
pub(super) fn find(timeline: &Timeline, calls: &Calls) -> Vec<Resource> {
    let words = words(timeline, calls).into_iter();
    words.filter_map(|(key, word)| resource(timeline, key, &word)).collect()
}

/// All futex words except those of mutexes, read-write locks and barriers.
fn words(timeline: &Timeline, calls: &Calls) -> BTreeMap<Key, Word> {
    let mut words: BTreeMap<Key, Word> = BTreeMap::new();
    let mut others: FxHashSet<Key> = FxHashSet::default();
    for slept in sleeps(timeline) {
        let is_other = |stack: u32| {
            calls.is_mutex(stack) || calls.is_barrier(stack) || calls.read_write(stack).is_some()
        };
        if slept.stack.is_some_and(is_other) {
            others.insert(slept.key);
        }
        let known = words.entry(slept.key).or_default();
        let began = (slept.start_ns, slept.index);
        known.first = Some(known.first.map_or(began, |first| first.min(began)));
        let woken_ns = match slept.wait.wake {
            Wake::By(wakeup) => timeline.wakeups.get(wakeup as usize).map(|wakeup| wakeup.time.0),
            _ => None,
        };
        let waited = Waited { began_ns: slept.start_ns, woken_ns, ran_ns: slept.ran_ns };
        known.threads.entry(slept.index).or_default().waits.push(waited);
    }
    for wakeup in &timeline.wakeups {
        let Some((wakee, wait)) = timeline.ended_by(wakeup) else { continue };
        let known = word(wait).and_then(|address| words.get_mut(&(wakee.pid, address)));
        if let Some(known) = known {
            known.threads.entry(wakeup.waker).or_default().wakes.push(wakeup.time.0);
            known.handed.push((wakeup.waker, wakeup.wakee));
        }
    }
    words.retain(|key, _| !others.contains(key));
    join_conditions(&mut words);
    words
}

/// Joins the two neighbouring words of a condition variable of the C library, for which threads wait in turn.
fn join_conditions(words: &mut BTreeMap<Key, Word>) {
    const SECOND: u64 = 4;
    let firsts: Vec<Key> =
        words.keys().filter(|(_, address)| address.is_multiple_of(2 * SECOND)).copied().collect();
    for first in firsts {
        let second = (first.0, first.1.saturating_add(SECOND));
        let Some(other) = words.remove(&second) else { continue };
        let Some(known) = words.get_mut(&first) else { continue };
        known.first = known.first.min(other.first);
        known.handed.extend(other.handed);
        for (thread, marks) in other.threads {
            let own = known.threads.entry(thread).or_default();
            own.waits.extend(marks.waits);
            own.waits.sort_unstable();
            own.wakes.extend(marks.wakes);
            own.wakes.sort_unstable();
        }
    }
}

/// Whether nearly all threads that wait there wake other threads there, and nearly no other threads do. A thread that
/// takes part in nearly all wake-ups serves the other threads: then it is no resource.
fn is_shared(word: &Word) -> bool {
    let most = |part: usize, all: usize| part * 100 >= all * BY_USERS_PERCENT;
    let users: Vec<&Marks> = word.threads.values().filter(|marks| !marks.waits.is_empty()).collect();
    let by_users: usize = users.iter().map(|marks| marks.wakes.len()).sum();
    let wakers = users.iter().filter(|marks| !marks.wakes.is_empty()).count();
    let takes_part = |thread: u32| {
        word.handed.iter().filter(|(waker, wakee)| *waker == thread || *wakee == thread).count()
    };
    let serves = |thread: &u32| most(takes_part(*thread), word.handed.len());
    word.handed.len() >= FEWEST
        && most(by_users, word.handed.len())
        && most(wakers, users.len())
        && !word.threads.keys().any(serves)
}

/// The bounded resource that a word belongs to, if there is one.
/// Whether threads wait long enough for the word that it matters. The estimate is not exact: a word of Python's runtime with 348
/// waits of 20 µs seemed to have permits, and the simulation deadlocked.
fn is_waited_for(timeline: &Timeline, word: &Word) -> bool {
    let waits = word.threads.values().flat_map(|marks| &marks.waits);
    let lengths = waits.map(|wait| wait.woken_ns.unwrap_or(timeline.end.0).saturating_sub(wait.began_ns));
    let waited = lengths.fold(0, u64::saturating_add) as f64;
    waited >= LEAST_WAITED * timeline.end.0.saturating_sub(timeline.start.0) as f64
}

fn resource(timeline: &Timeline, key: Key, word: &Word) -> Option<Resource> {
    if !is_shared(word) || !is_waited_for(timeline, word) {
        return None;
    }
    let users = word.threads.iter().filter(|(_, marks)| !marks.waits.is_empty());
    let mut marks: BTreeMap<u32, Vec<Mark>> =
        users.map(|(&thread, marks)| (thread, marks.in_order())).collect();
    let usual_ns = usual_ns(marks.values())?;
    let mut lost: FxHashSet<u64> = FxHashSet::default();
    marks.values_mut().for_each(|marks| join_tries(marks, usual_ns / TRIES_AGAIN, &mut lost));
    let uses: BTreeMap<u32, Vec<Use>> = marks
        .iter()
        .filter_map(|(&thread, marks)| {
            let known = timeline.threads.get(thread as usize)?;
            Some((thread, uses(marks, usual_ns, &lost, known.start.0..known.end.0)))
        })
        .collect();
    let waits = marks.values().flatten().filter_map(|mark| match *mark {
        Mark::Wait(waited) => Some((waited.began_ns, waited.woken_ns.unwrap_or(timeline.end.0))),
        Mark::Wake(_) => None,
    });
    let permits = all_in_use(uses.values().flatten(), waits)?;
    let is_bounded = permits >= 2 && permits < uses.len() as u64;
    is_bounded.then(|| Resource { key, first: word.first.unwrap_or_default(), permits, uses })
}

#[derive(Clone, Copy, Debug)]
enum Mark {
    Wait(Waited),
    Wake(u64),
}

impl Marks {
    fn in_order(&self) -> Vec<Mark> {
        let waits = self.waits.iter().map(|waited| (waited.began_ns, Mark::Wait(*waited)));
        let mut all: Vec<(u64, Mark)> =
            waits.chain(self.wakes.iter().map(|&time| (time, Mark::Wake(time)))).collect();
        all.sort_by_key(|(time, _)| *time);
        all.into_iter().map(|(_, mark)| mark).collect()
    }
}

/// Joins waits that follow each other within `within_ns`. `lost` gets the times of wake-ups that gave no permit.
fn join_tries(marks: &mut Vec<Mark>, within_ns: u64, lost: &mut FxHashSet<u64>) {
    marks.dedup_by(|next, last| {
        let (Mark::Wait(next), Mark::Wait(last)) = (next, last) else { return false };
        let is_again = next.began_ns.saturating_sub(last.ran_ns) < within_ns;
        if is_again {
            lost.extend(last.woken_ns);
            *last = Waited { began_ns: last.began_ns, ..*next };
        }
        is_again
    });
}

/// Median time for which threads that waited have a permit; `None` if too few are known.
fn usual_ns<'m>(threads: impl Iterator<Item = &'m Vec<Mark>>) -> Option<u64> {
    let mut lengths: Vec<u64> = Vec::new();
    for marks in threads {
        for pair in marks.windows(2) {
            if let [Mark::Wait(Waited { woken_ns: Some(woken_ns), .. }), Mark::Wake(time)] = pair {
                lengths.push(time.saturating_sub(*woken_ns));
            }
        }
    }
    lengths.sort_unstable();
    (lengths.len() >= FEWEST).then(|| lengths.get(lengths.len() / 2).copied()).flatten()
}

/// The stretches in which a thread has permits. If the thread took a permit without waiting, or returned one without
/// waking another thread, it has it for the usual time. If the thread that it woke got nothing, it took the permit
/// again at once.
fn uses(marks: &[Mark], usual_ns: u64, lost: &FxHashSet<u64>, lives: std::ops::Range<u64>) -> Vec<Use> {
    let mut uses: Vec<Use> = Vec::with_capacity(marks.len());
    let mut got: Option<(Waited, u64)> = None;
    // The thread has no permit before this instant that is still to be found.
    let mut free_ns = lives.start;
    let unseen = |got: Option<(Waited, u64)>, next_ns: u64| {
        let (waited, from_ns) = got?;
        let last_ns = next_ns.saturating_sub(1).max(waited.ran_ns);
        let until_ns = from_ns.saturating_add(usual_ns).clamp(waited.ran_ns, last_ns);
        Some(Use { from_ns, until_ns, waited: Some(waited), woke: false })
    };
    for mark in marks {
        match *mark {
            Mark::Wait(waited) => {
                uses.extend(unseen(got.take(), waited.began_ns));
                got = waited.woken_ns.map(|woken_ns| (waited, woken_ns));
                free_ns = waited.ran_ns;
            }
            Mark::Wake(time) => {
                let (waited, from_ns) = match got.take() {
                    Some((waited, from_ns)) => (Some(waited), from_ns),
                    None if lost.contains(&free_ns) => (None, free_ns),
                    None => (None, time.saturating_sub(usual_ns).max(free_ns)),
                };
                // A thread that wakes several threads at once returns one permit.
                if from_ns < time {
                    uses.push(Use { from_ns, until_ns: time, waited, woke: true });
                }
                free_ns = time;
            }
        }
    }
    uses.extend(unseen(got, lives.end));
    uses
}

/// The number of permits in use nearly always while threads wait; `None` if there is no such number.
fn all_in_use<'u>(
    uses: impl Iterator<Item = &'u Use>,
    waits: impl Iterator<Item = (u64, u64)>,
) -> Option<u64> {
    let mut changes: Vec<(u64, i64, i64)> = Vec::new();
    for used in uses {
        changes.extend([(used.from_ns, 1, 0), (used.until_ns, -1, 0)]);
    }
    for (from_ns, until_ns) in waits {
        changes.extend([(from_ns, 0, 1), (until_ns, 0, -1)]);
    }
    changes.sort_unstable();
    let mut lasted: BTreeMap<i64, u64> = BTreeMap::new();
    let (mut in_use, mut waiting, mut last) = (0, 0, 0);
    for (time, used, waits) in changes {
        if waiting > 0 {
            let sum = lasted.entry(in_use).or_default();
            *sum = sum.saturating_add(time - last);
        }
        (in_use, waiting, last) = (in_use + used, waiting + waits, time);
    }
    let sum = |all: &mut dyn Iterator<Item = &u64>| all.fold(0u64, |sum, ns| sum.saturating_add(*ns)) as f64;
    let all = sum(&mut lasted.values());
    let (&permits, &usual) = lasted.iter().max_by_key(|(_, ns)| **ns)?;
    let more = sum(&mut lasted.range(permits + 1..).map(|(_, ns)| ns));
    let fits = usual as f64 >= all * ALL_IN_USE && more <= all * MORE_IN_USE;
    fits.then(|| u64::try_from(permits).ok()).flatten()
}

/// Adds the resources to the timeline as semaphores, with the operations of their uses.
pub(super) fn write(timeline: &mut Timeline, found: &[Resource], clocks: &[Clock]) {
    let first_lock = u32::try_from(timeline.locks.len()).unwrap_or(u32::MAX);
    let mut by_thread: BTreeMap<u32, Vec<(LockOperation, usize)>> = BTreeMap::new();
    for (object, resource) in (first_lock..).zip(found) {
        let (pid, address) = resource.key;
        let (time, thread) = resource.first;
        let first = FirstUse { time: Timestamp(time), thread, caller: 0 };
        timeline.locks.push(Lock { pid, address, kind: SyncObject::Semaphore, first, put_back: true });
        let mut fact = PutBack { lock: object, ..PutBack::default() };
        let mut held_ns = 0u64;
        for (place, (&thread, uses)) in resource.uses.iter().enumerate() {
            let Some(clock) = clocks.get(thread as usize) else { continue };
            let start_ns = timeline.threads.get(thread as usize).map_or(0, |thread| thread.start.0);
            let own = by_thread.entry(thread).or_default();
            let of = |kind, began_ns, ended_ns| operation(thread, object, kind, (began_ns, ended_ns));
            if place == 0 {
                let init = of(SyncOperation::SemaphoreInit, start_ns, start_ns);
                own.push((LockOperation { value: resource.permits, ..init }, 0));
            }
            for used in uses {
                let Some((takes, gives)) = used.ends(clock, start_ns) else { continue };
                let since_ns = used.waited.map_or(takes.1, |waited| waited.began_ns);
                own.push((of(SyncOperation::SemaphoreWait, since_ns, takes.1), takes.0));
                own.push((of(SyncOperation::SemaphorePost, gives.1, gives.1), gives.0));
                held_ns = held_ns.saturating_add(gives.1 - takes.1);
                let is_seen = used.waited.is_some() || used.woke;
                fact.seen += u64::from(is_seen);
                fact.added += u64::from(!is_seen);
            }
        }
        fact.hold_ns = held_ns / (fact.seen + fact.added).max(1);
        timeline.put_back.push(fact);
    }
    put(timeline, by_thread);
}

impl Use {
    /// Interval and time of the use's beginning, and of its end.
    fn ends(&self, clock: &Clock, start_ns: u64) -> Option<((usize, u64), (usize, u64))> {
        let takes = match self.waited {
            Some(waited) => clock.next_run(waited.ran_ns)?,
            // The thread had the permit when the recording began.
            None if self.from_ns <= start_ns => (0, start_ns),
            None => clock.when(clock.at(self.from_ns), false)?,
        };
        let exactly = clock.next_run(self.until_ns).filter(|next| next.1 == self.until_ns);
        let gives = exactly.or_else(|| clock.when(clock.at(self.until_ns), !self.woke))?;
        Some((takes, if gives.1 < takes.1 { takes } else { gives }))
    }
}
