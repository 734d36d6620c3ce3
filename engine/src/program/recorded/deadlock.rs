//! Threads that wait forever for each other's locks (a method of longpole's own).
//!
//! A wait that never ends has no recorded operation, but the kernel shows its futex word. If the word is in a lock that
//! another thread took and did not release, the waiter waits for that thread. So does a joining thread for the joined one. A
//! deadlock is a cycle of such waits that lasts to the end of the recording, or a wait for a lock of a thread that has ended.
//! A timed wait is none. If operations of the lock's family are missing or were recorded too late, the program's memory tells
//! a mutex's holder ([`AwaitedThread`]).

use super::objects::{ByPlace, Word};
use super::threads::Context;
use crate::event::{AwaitedThread, FutexFact, SyncObject, futex_operation};
use crate::finding::{Finding, Holder, Stuck, StuckThread, WaitsFor};
use crate::program::bare_name;
use crate::program::lock_replay::{MadeThreads, Section, Sections, made_threads};
use crate::program::naming::lock_names::Addresses;
use crate::timeline::{State, StepKind, Thread, Timeline, WaitReason};
use rustc_hash::{FxHashMap, FxHashSet};

/// Largest number of waiting threads that are named; further ones are counted.
const NAMED: usize = 8;
/// Largest number of readers of one lock that are examined.
const HOLDERS: usize = 64;
/// When a process is killed, its threads end one after the other. A thread that ended at least this long before the end
/// of a wait ended by itself, nanoseconds.
const BEFORE_NS: u64 = 100_000_000;
/// If all threads together ran for less than this fraction (one part in `ALL`) of the time, nothing else runs.
const ALL: u64 = 50;

/// A thread's last wait, which does not end.
struct Last {
    thread: usize,
    wait: usize,
    since: u64,
    until: u64,
    waits_for: Thing,
    /// Threads that have the awaited thing.
    holders: Vec<usize>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Thing {
    /// A lock, by its index; the flag says whether the holders only read.
    Lock {
        object: usize,
        read: bool,
    },
    /// A lock without recorded operations, by its address.
    Word(u64),
    EndOf(usize),
}

/// What the last waits of threads show, if these waits never ended.
#[derive(Default)]
pub(in crate::program) struct LastWaits {
    /// The finding, if threads of the recording wait forever.
    pub(in crate::program) deadlock: Option<Finding>,
    /// Locks with waits until the end: index of the lock, and length of the wait, nanoseconds.
    pub(in crate::program) waited: Vec<(u32, u64)>,
}

pub(super) fn find(
    timeline: &Timeline,
    sections: &Sections,
    context: &Context<'_>,
    addresses: &Addresses<'_>,
) -> LastWaits {
    let mut held: FxHashMap<u32, Vec<&Section>> = FxHashMap::default();
    for section in sections.still_open() {
        held.entry(section.object).or_default().push(section);
    }
    // A mutex that another thread may release belongs to no thread.
    let released: FxHashSet<u32> = sections.stray_releases(timeline).collect();
    held.retain(|object, _| !released.contains(object));
    if held.is_empty() && timeline.threads.iter().all(|thread| thread.awaits.is_none()) {
        return LastWaits::default();
    }
    let mut ends: FxHashMap<u32, u64> = FxHashMap::default();
    for thread in &timeline.threads {
        let end = ends.entry(thread.pid).or_insert(0);
        *end = thread.end.0.max(*end);
    }
    // A thread that ended before the other threads waited: what they waited for did end.
    let lasts = |thread: &Thread| {
        let end = ends.get(&thread.pid).copied().unwrap_or(0);
        thread.end.0.saturating_add(BEFORE_NS) >= end
    };
    let (places, made) = (ByPlace::of(&timeline.locks), made_threads(timeline));
    let numbers: FxHashMap<(u32, u32), usize> = timeline
        .threads
        .iter()
        .enumerate()
        .map(|(index, thread)| ((thread.pid, thread.tid), index))
        .collect();
    let waiting: Vec<Last> = timeline
        .threads
        .iter()
        .enumerate()
        .filter(|(_, thread)| lasts(thread))
        .filter_map(|(index, thread)| {
            let recorded = last_wait(timeline, (index, thread), &held, &places, &made);
            recorded.or_else(|| wait_in_memory((index, thread), &places, &numbers, timeline, &released))
        })
        .collect();
    let of_lock = |last: &Last| match last.waits_for {
        Thing::Lock { object, .. } => {
            Some((u32::try_from(object).ok()?, last.until.saturating_sub(last.since)))
        }
        Thing::EndOf(_) | Thing::Word(_) => None,
    };
    LastWaits {
        deadlock: finding(timeline, &waiting, context, addresses),
        waited: waiting.iter().filter_map(of_lock).collect(),
    }
}

/// The finding, if some of the threads wait forever.
fn finding(
    timeline: &Timeline,
    waiting: &[Last],
    context: &Context<'_>,
    addresses: &Addresses<'_>,
) -> Option<Finding> {
    let stuck: Vec<&Last> = stuck(timeline, waiting);
    let since = stuck.iter().map(|last| last.since).max()?;
    let until = stuck.iter().map(|last| last.until).max()?;
    let ran = timeline.threads.iter().map(|thread| ran_after(thread, since)).fold(0, u64::saturating_add);
    let others_ran = ran > until.saturating_sub(since) / ALL;
    let threads = stuck.iter().take(NAMED).map(|last| case(timeline, last, context, addresses)).collect();
    let end_ns = since.saturating_sub(timeline.start.0) as f64;
    let stuck = Stuck { end_ns, threads, more: stuck.len().saturating_sub(NAMED) };
    Some(Finding::Deadlock { stuck, others_ran: Some(others_ran) })
}

/// A thread's last wait, if nothing follows it and it is for a lock that others hold or for the end of a thread.
fn last_wait(
    timeline: &Timeline,
    (index, thread): (usize, &Thread),
    held: &FxHashMap<u32, Vec<&Section>>,
    places: &ByPlace,
    made: &MadeThreads,
) -> Option<Last> {
    let (since, _, state) = thread.spans().filter(|(.., state)| matches!(state, State::Blocked(_))).last()?;
    let State::Blocked(number) = state else { return None };
    let is_done = |kind: StepKind| !matches!(kind, StepKind::Wake(_));
    let acted =
        thread.steps.iter().rev().take_while(|step| step.time >= since).any(|step| is_done(step.kind));
    let is_last = matches!(thread.intervals.last().map(|last| last.state), Some(State::Blocked(_)));
    if acted || !(is_last || thread.died) {
        return None;
    }
    let wait = thread.waits.get(number as usize)?;
    let WaitReason::Futex(futex) = wait.reason else { return None };
    let of = |waits_for: Thing, holders: Vec<usize>| Last {
        thread: index,
        wait: number as usize,
        since: since.0,
        until: thread.end.0,
        waits_for,
        holders,
    };
    if timeline.is_thread_end(thread.pid, futex) {
        let child = awaited_thread(made, thread.pid, futex.word, since.0)?;
        return Some(of(Thing::EndOf(child), vec![child]));
    }
    let word = Word { pid: thread.pid, address: futex.word, words: futex.words };
    let object = places.at(&word, since)?;
    let kind = timeline.locks.get(object)?.kind;
    if !may_wait_for_ever(kind, futex) || is_incomplete(timeline, thread.pid, kind) {
        return None;
    }
    let sections = held.get(&u32::try_from(object).ok()?)?;
    let read = sections.iter().all(|section| section.reads);
    // Two threads cannot hold the lock for writing at once: a release must be missing.
    let is_possible = read || sections.len() == 1;
    let holders = sections.iter().take(HOLDERS).map(|section| section.thread as usize).collect();
    is_possible.then(|| of(Thing::Lock { object, read }, holders))
}

/// The last wait by the program's memory: for waits that began before operations of the lock were recorded.
fn wait_in_memory(
    (index, thread): (usize, &Thread),
    places: &ByPlace,
    numbers: &FxHashMap<(u32, u32), usize>,
    timeline: &Timeline,
    released: &FxHashSet<u32>,
) -> Option<Last> {
    let awaits: AwaitedThread = thread.awaits?;
    let holder = *numbers.get(&(thread.pid, awaits.tid))?;
    let (since, _, state) = thread.spans().last()?;
    let State::Blocked(number) = state else { return None };
    // Memory was read a little later: the thread may be in another wait.
    let is_other = |reason| matches!(reason, WaitReason::Futex(futex) if futex.word != awaits.futex.word);
    if thread.waits.get(number as usize).is_none_or(|wait| is_other(wait.reason)) {
        return None;
    }
    let word = Word { pid: thread.pid, address: awaits.futex.word, words: awaits.futex.words };
    let object = places.at(&word, since);
    if object.is_some_and(|object| u32::try_from(object).is_ok_and(|object| released.contains(&object))) {
        return None;
    }
    let lock = || object.map_or(Thing::Word(word.address), |object| Thing::Lock { object, read: false });
    Some(Last {
        thread: index,
        wait: number as usize,
        since: since.0,
        until: thread.end.0,
        waits_for: if timeline.is_thread_end(thread.pid, awaits.futex) {
            Thing::EndOf(holder)
        } else {
            lock()
        },
        holders: vec![holder],
    })
}

/// Whether the futex call may be a lock's without a time limit. The C library waits for mutexes by the plain call; for
/// read-write locks it uses the same call with and without a limit.
fn may_wait_for_ever(kind: SyncObject, futex: FutexFact) -> bool {
    const WAIT: u32 = 0;
    const LOCK_PI: u32 = 6;
    const WAIT_BITSET: u32 = 9;
    match kind {
        SyncObject::Mutex => matches!(futex_operation(futex.operation), WAIT | LOCK_PI),
        SyncObject::RwLock => matches!(futex_operation(futex.operation), WAIT | WAIT_BITSET),
        _ => false,
    }
}

/// Whether operations on this kind of object are missing in the process.
fn is_incomplete(timeline: &Timeline, pid: u32, kind: SyncObject) -> bool {
    let family = (pid, kind.family());
    timeline.lossy.contains(&family) || timeline.families_removed.contains(&family)
}

/// The thread whose `pthread_t` is the largest one below the word: it is the address of the C library's description of
/// the thread, which contains the word.
fn awaited_thread(made: &MadeThreads, pid: u32, word: u64, now: u64) -> Option<usize> {
    /// More than the size of the description in any known library.
    const BYTES: u64 = 4096;
    let of_process = made.iter().filter(|((process, handle), _)| *process == pid && *handle <= word);
    let ((_, handle), lives) = of_process.max_by_key(|((_, handle), _)| *handle)?;
    let (_, child) = lives.iter().rev().find(|(forked, _)| *forked <= now)?;
    (word - handle < BYTES).then_some(*child as usize)
}

/// Threads that no thread can wake: each waits for a thread that is stuck, too, or that has ended.
fn stuck<'l>(timeline: &Timeline, waiting: &'l [Last]) -> Vec<&'l Last> {
    let ended = |last: &Last, holder: usize| {
        let holder = timeline.threads.get(holder);
        let has_ended =
            holder.is_some_and(|holder| holder.died && holder.end.0.saturating_add(BEFORE_NS) < last.until);
        has_ended && !matches!(last.waits_for, Thing::EndOf(_))
    };
    let mut left: Vec<&Last> = waiting.iter().collect();
    loop {
        let count = left.len();
        let waits: FxHashSet<usize> = left.iter().map(|last| last.thread).collect();
        let is_stuck =
            |last: &Last| last.holders.iter().any(|holder| waits.contains(holder) || ended(last, *holder));
        left = left.iter().copied().filter(|last| is_stuck(last)).collect();
        if left.len() == count {
            break;
        }
    }
    // Threads that other threads wait for come first: they are the cycle.
    let awaited: FxHashSet<usize> = left.iter().flat_map(|last| last.holders.iter().copied()).collect();
    let (mut first, rest): (Vec<&Last>, Vec<&Last>) =
        left.iter().copied().partition(|last| awaited.contains(&last.thread));
    first.extend(rest);
    first
}

fn ran_after(thread: &Thread, since: u64) -> u64 {
    let running = thread.spans().filter(|(_, _, state)| matches!(state, State::Running { .. }));
    running.fold(0, |sum, (from, until, _)| sum.saturating_add(until.0.saturating_sub(from.0.max(since))))
}

fn case(timeline: &Timeline, last: &Last, context: &Context<'_>, addresses: &Addresses<'_>) -> StuckThread {
    let holder = last.holders.first().map(|holder| Holder {
        thread: name(context, *holder),
        itself: last.holders.contains(&last.thread),
        ended: timeline.threads.get(*holder).is_some_and(|holder| holder.end.0 < last.since),
    });
    let waits_for = match last.waits_for {
        Thing::EndOf(thread) => WaitsFor::End { thread: name(context, thread) },
        Thing::Word(address) => {
            let pid = timeline.threads.get(last.thread).map_or(0, |thread| thread.pid);
            let variable = addresses.at(pid, address, u64::MAX).and_then(|fact| fact.name.clone());
            WaitsFor::Lock { name: variable.unwrap_or_else(|| format!("{address:#x}")), holder }
        }
        Thing::Lock { object, read } => {
            let name = bare_name(context.object(object)).to_owned();
            let kind = timeline.locks.get(object).map(|lock| lock.kind);
            match kind {
                Some(SyncObject::RwLock) if read => WaitsFor::Writing { name, holder },
                Some(SyncObject::RwLock) => WaitsFor::Reading { name, holder },
                _ => WaitsFor::Lock { name, holder },
            }
        }
    };
    StuckThread {
        thread: name(context, last.thread),
        waits_for,
        function: context.sleeper(last.thread, last.wait).map(str::to_owned),
    }
}

fn name(context: &Context<'_>, thread: usize) -> String {
    u32::try_from(thread).ok().and_then(|thread| context.thread(thread)).unwrap_or_default().to_owned()
}
