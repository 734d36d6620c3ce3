//! Counts for synchronization objects which threads waited for them. Objects have recorded operations, or are futex
//! words, which are visible only when a thread has to wait.

use super::for_nothing::ForNothing;
use super::model::{ObjectKind, Primitive, PutBackUses, RecordedObject, shares};
use super::stacks::WaitsIn;
use super::threads::Context;
use crate::program::Program;
use crate::program::lock_replay::Nesting;
use crate::program::naming::lock_names::{Addresses, group, in_java, is_java_wait};
use crate::program::naming::names::{GIL, unique, waker};
use crate::time::Timestamp;
use crate::timeline::{FirstUse, Lock, NO_OBJECT, State, Thread, Timeline, Wait, WaitReason, Wake};
use rustc_hash::{FxHashMap, FxHashSet};
use std::cmp::Ordering;
use std::collections::BTreeMap;

/// Least number of waits for which the threads that ended them show the purpose of a word.
const FEWEST_WAITS: u64 = 10;

/// Counts of waits for one object.
#[derive(Default)]
struct Counts<'a> {
    waits: u64,
    wait_ns: u64,
    moved: u64,
    for_nothing: u64,
    for_nothing_ns: u64,
    waiters: FxHashMap<&'a str, u64>,
    wakers: FxHashMap<String, u64>,
    /// Threads that waited.
    threads: FxHashSet<u32>,
    /// Waits for a lock, and for a signal, by the waiting functions.
    locks: u64,
    signals: u64,
    /// Waits for the lock of a Python interpreter.
    gil: u64,
    /// For each thread: number of waits that it ended.
    ended_by: FxHashMap<u32, u64>,
}

impl<'a> Counts<'a> {
    fn add(
        &mut self,
        wait: &Wait,
        length_ns: u64,
        place: (usize, usize),
        for_nothing: Option<u64>,
        context: &Context<'a>,
    ) {
        self.waits += 1;
        self.wait_ns = self.wait_ns.saturating_add(length_ns);
        self.moved += u64::from(wait.moved_to.is_some());
        if let Some(ns) = for_nothing {
            self.for_nothing += 1;
            self.for_nothing_ns = self.for_nothing_ns.saturating_add(ns);
        }
        if let Some(function) = context.sleeper(place.0, place.1) {
            *self.waiters.entry(function).or_insert(0) += 1;
        }
        match context.waits_in(place.0, place.1) {
            Some(WaitsIn::Gil) => self.gil += 1,
            Some(WaitsIn::A(Primitive::Lock)) => self.locks += 1,
            Some(WaitsIn::A(Primitive::Signal)) => self.signals += 1,
            None => {}
        }
        self.threads.extend(u32::try_from(place.0));
        if let Wake::By(wakeup) = wait.wake
            && let Some(thread) = context.waking_thread(wakeup)
        {
            *self.ended_by.entry(thread).or_insert(0) += 1;
        }
        let name = match wait.wake {
            Wake::By(wakeup) => context.waker(wakeup).map(str::to_owned),
            Wake::External(external) => Some(format!("({})", waker(external))),
            Wake::CutAtEnd | Wake::CutByUnknown => None,
        };
        if let Some(name) = name {
            *self.wakers.entry(name).or_insert(0) += 1;
        }
    }

    fn merge(&mut self, other: Counts<'a>) {
        self.waits += other.waits;
        self.wait_ns = self.wait_ns.saturating_add(other.wait_ns);
        self.moved += other.moved;
        self.for_nothing += other.for_nothing;
        self.for_nothing_ns = self.for_nothing_ns.saturating_add(other.for_nothing_ns);
        self.locks += other.locks;
        self.signals += other.signals;
        self.gil += other.gil;
        self.threads.extend(other.threads);
        add_all(&mut self.waiters, other.waiters);
        add_all(&mut self.wakers, other.wakers);
        add_all(&mut self.ended_by, other.ended_by);
    }

    /// Whether the waiting functions show that the word belongs to a condition variable or another signal.
    fn is_of_condition(&self) -> bool {
        self.gil + self.signals > self.locks
    }

    /// The Java programmer's name for the word.
    fn in_java(&self) -> Option<String> {
        let most = self.waiters.iter().max_by_key(|(name, count)| (**count, **name));
        most.and_then(|(name, _)| in_java(name)).map(str::to_owned)
    }

    fn fill(self, object: &mut RecordedObject) {
        object.waits = self.waits;
        object.wait_ns = self.wait_ns;
        object.moved = self.moved;
        object.for_nothing = self.for_nothing;
        object.for_nothing_ns = self.for_nothing_ns;
        let by_waiters = self.ended_by.iter().filter(|(thread, _)| self.threads.contains(thread));
        object.by_waiters = by_waiters.map(|(_, waits)| waits).sum();
        let by_others = self.ended_by.values().sum::<u64>().saturating_sub(object.by_waiters);
        object.primitive = match (self.locks + self.gil).cmp(&self.signals) {
            _ if object.kind != ObjectKind::Futex => None,
            Ordering::Greater => Some(Primitive::Lock),
            Ordering::Less => Some(Primitive::Signal),
            // No function shows the purpose. A thread that ends a wait for a lock waits for that lock at other times.
            Ordering::Equal if self.waits < FEWEST_WAITS => None,
            Ordering::Equal if by_others.saturating_mul(2) > self.waits => Some(Primitive::Signal),
            Ordering::Equal if object.by_waiters.saturating_mul(2) > self.waits => Some(Primitive::Lock),
            Ordering::Equal => None,
        };
        object.waiters = shares(self.waiters);
        object.wakers = shares(self.wakers);
    }
}

fn add_all<K: std::hash::Hash + Eq>(to: &mut FxHashMap<K, u64>, from: FxHashMap<K, u64>) {
    from.into_iter().for_each(|(key, count)| *to.entry(key).or_insert(0) += count);
}

/// A futex word outside of recorded operations.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Word {
    pub(super) pid: u32,
    pub(super) address: u64,
    /// Number of words, if the thread waited for any of several words and it is not known for which; else 0.
    pub(super) words: u32,
}

/// An object at an address: first use, size in bytes, index.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Lifetime {
    first: Timestamp,
    bytes: u64,
    number: usize,
}

/// Objects with recorded operations, by process and address, in the order in which they existed there.
pub(super) struct ByPlace(BTreeMap<(u32, u64), Vec<Lifetime>>);

impl ByPlace {
    pub(super) fn of(locks: &[Lock]) -> ByPlace {
        let mut places = ByPlace(BTreeMap::new());
        for (number, lock) in locks.iter().enumerate() {
            let life = Lifetime { first: lock.first.time, bytes: lock.kind.most_bytes(), number };
            places.0.entry((lock.pid, lock.address)).or_default().push(life);
        }
        for lives in places.0.values_mut() {
            lives.sort_unstable();
        }
        places
    }

    /// Index of the object that contains a word, for a wait that began at `start`: the last object in use there at that
    /// time, else the first later one.
    pub(super) fn at(&self, word: &Word, start: Timestamp) -> Option<usize> {
        let (&(pid, address), lives) = self.0.range(..=(word.pid, word.address)).next_back()?;
        if pid != word.pid || word.words > 0 {
            return None;
        }
        let nesting = |life: &&Lifetime| word.address.saturating_sub(address) < life.bytes;
        let used = lives.iter().rev().filter(nesting).find(|life| life.first <= start);
        used.or_else(|| lives.iter().find(nesting)).map(|life| life.number)
    }
}

/// All objects: those of the timeline in their order, then futex words in order of their first wait.
pub(super) fn all(
    timeline: &Timeline,
    program: &Program,
    nesting: &Nesting,
    for_nothing: &ForNothing,
    context: &Context<'_>,
    addresses: &Addresses<'_>,
) -> Vec<RecordedObject> {
    let mut known: Vec<Counts<'_>> = timeline.locks.iter().map(|_| Counts::default()).collect();
    let by_place = ByPlace::of(&timeline.locks);
    let mut words: FxHashMap<Word, (FirstUse, Counts<'_>)> = FxHashMap::default();
    for (index, thread) in timeline.threads.iter().enumerate() {
        for (start, end, state) in thread.spans() {
            let State::Blocked(number) = state else { continue };
            let Some(wait) = thread.waits.get(number as usize) else { continue };
            let place = (index, number as usize);
            let length_ns = end.0.saturating_sub(start.0);
            let used = nesting.operation(timeline, index, number);
            if let Some(object) = used.map(|used| used.object).filter(|object| *object != NO_OBJECT) {
                if let Some(counts) = known.get_mut(object as usize) {
                    counts.add(wait, length_ns, place, for_nothing.ns(place), context);
                }
                continue;
            }
            let WaitReason::Futex(futex) = wait.reason else { continue };
            if used.is_some() || timeline.is_thread_end(thread.pid, futex) {
                continue;
            }
            let word = Word {
                pid: thread.pid,
                address: futex.word,
                words: if futex.words > 1 { futex.words } else { 0 },
            };
            // The object's operations began to be recorded during this wait, or stopped.
            if let Some(counts) = by_place.at(&word, start).and_then(|object| known.get_mut(object)) {
                counts.add(wait, length_ns, place, for_nothing.ns(place), context);
                continue;
            }
            let thread = u32::try_from(index).unwrap_or(u32::MAX);
            let first = FirstUse { time: start, thread, caller: 0 };
            let (known_first, counts) = words.entry(word).or_insert_with(|| (first, Counts::default()));
            if start < known_first.time {
                *known_first = first;
            }
            counts.add(wait, length_ns, place, for_nothing.ns(place), context);
        }
    }
    join_condition_words(&mut words);
    let mut words: Vec<_> = words.into_iter().collect();
    words.sort_by_key(|(word, (first, _))| (first.time, word.pid, word.address, word.words));
    let of_locks = timeline.locks.iter().zip(&mut known);
    let of_locks = of_locks.map(|(lock, counts)| (lock.pid, group(lock, addresses), counts));
    let of_words = words.iter_mut().map(|(word, (_, counts))| (word.pid, counts.in_java(), counts));
    wait_for_each_other(of_locks.chain(of_words));
    let mut objects: Vec<RecordedObject> = timeline
        .locks
        .iter()
        .zip(known)
        .enumerate()
        .map(|(number, (lock, counts))| {
            let mut object = of_lock(lock, context, addresses);
            let is_removed = |&(pid, family)| pid == lock.pid && lock.kind.family() == family;
            object.put_back = put_back(timeline, number);
            object.uncontended_visible = object.put_back.is_none()
                && !timeline.families_removed.iter().chain(&timeline.lossy).any(is_removed);
            object.name = program.objects.get(number).cloned().unwrap_or_default();
            counts.fill(&mut object);
            object
        })
        .collect();
    alone(&mut objects);
    let several = words.iter().any(|(word, _)| words.first().is_some_and(|(first, _)| first.pid != word.pid));
    let mut taken = FxHashMap::default();
    for object in &objects {
        taken.insert(object.name.clone(), 2);
    }
    for (word, (first, counts)) in words {
        objects.push(of_word(word, &first, counts, several, context, addresses, &mut taken));
    }
    objects
}

/// Joins the two neighbouring words of condition variables of the C library, for which threads wait in turn.
fn join_condition_words(words: &mut FxHashMap<Word, (FirstUse, Counts<'_>)>) {
    const SECOND: u64 = 4;
    let firsts = words.keys().filter(|word| word.address.is_multiple_of(2 * SECOND)).copied();
    let firsts: Vec<Word> = firsts.collect();
    for first in firsts {
        let second = Word { address: first.address + SECOND, ..first };
        let is_condition = |word: &Word| words.get(word).is_some_and(|(_, counts)| counts.is_of_condition());
        if !is_condition(&first) || !is_condition(&second) {
            continue;
        }
        if let Some((second_use, counts)) = words.remove(&second)
            && let Some((first_use, all)) = words.get_mut(&first)
        {
            if second_use.time < first_use.time {
                *first_use = second_use;
            }
            all.merge(counts);
        }
    }
}

/// Each thread of Java has one futex word for waits for any lock, so all waiters of such words count as waiters of each
/// word.
fn wait_for_each_other<'c, 'a: 'c>(objects: impl Iterator<Item = (u32, Option<String>, &'c mut Counts<'a>)>) {
    let of_java = |(pid, group, counts): (u32, Option<String>, &'c mut Counts<'a>)| {
        group.filter(|group| is_java_wait(group)).map(|group| ((pid, group), counts))
    };
    let mut alike: FxHashMap<(u32, String), Vec<&'c mut Counts<'a>>> = FxHashMap::default();
    for (key, counts) in objects.filter_map(of_java) {
        alike.entry(key).or_default().push(counts);
    }
    for group in alike.values_mut() {
        let threads: FxHashSet<u32> =
            group.iter().flat_map(|counts| counts.threads.iter().copied()).collect();
        group.iter_mut().for_each(|counts| counts.threads.clone_from(&threads));
    }
}

fn of_lock(lock: &Lock, context: &Context<'_>, addresses: &Addresses<'_>) -> RecordedObject {
    let first = &lock.first;
    RecordedObject {
        kind: ObjectKind::Sync(lock.kind),
        pid: lock.pid,
        address: format!("{:#x}", lock.address),
        variable: addresses.lock_variable(lock).map(str::to_owned),
        first_use: addresses.first_line(lock.pid, first).map(str::to_owned),
        first_function: addresses.first_function(lock.pid, first).map(str::to_owned),
        first_thread: context.thread(first.thread).map(str::to_owned),
        group: group(lock, addresses),
        ..RecordedObject::default()
    }
}

fn put_back(timeline: &Timeline, number: usize) -> Option<PutBackUses> {
    let known = timeline.put_back.iter().find(|known| known.lock as usize == number)?;
    Some(PutBackUses {
        held_share: known.share,
        held_error: known.error,
        seen: known.seen,
        added: known.added,
        hold_ns: known.hold_ns,
    })
}

/// Removes groups of a single object.
fn alone(objects: &mut [RecordedObject]) {
    let mut sizes: FxHashMap<(ObjectKind, u32, String), u32> = FxHashMap::default();
    let key = |object: &RecordedObject| {
        object.group.as_ref().map(|group| (object.kind.clone(), object.pid, group.clone()))
    };
    for key in objects.iter().filter_map(key) {
        *sizes.entry(key).or_insert(0) += 1;
    }
    for object in objects {
        if key(object).is_some_and(|key| sizes.get(&key) == Some(&1)) {
            object.group = None;
        }
    }
}

fn of_word(
    word: Word,
    first: &FirstUse,
    counts: Counts<'_>,
    several: bool,
    context: &Context<'_>,
    addresses: &Addresses<'_>,
    taken: &mut FxHashMap<String, u64>,
) -> RecordedObject {
    let variable = addresses.variable(word.pid, word.address, first).map(str::to_owned);
    let is_gil = counts.gil > counts.locks + counts.signals;
    let mut object = RecordedObject {
        kind: ObjectKind::Futex,
        pid: word.pid,
        address: format!("{:#x}", word.address),
        first_thread: context.thread(first.thread).map(str::to_owned),
        ..RecordedObject::default()
    };
    counts.fill(&mut object);
    object.first_function = object.waiters.first().map(|share| share.name.clone());
    let place = match (&variable, &object.first_function) {
        (Some(variable), _) => variable.clone(),
        (None, Some(function)) => match in_java(function) {
            Some(of) => {
                object.group = Some(of.to_owned()).filter(|of| is_java_wait(of));
                format!("{} {of}", object.address)
            }
            // A wait in `futex_wait` does not show which word the thread waited for.
            None if context.is_of_the_system(function) => object.address.clone(),
            None => format!("in {function}"),
        },
        (None, None) => object.address.clone(),
    };
    let mut name = match word.words {
        _ if is_gil => GIL.to_owned(),
        0 => format!("futex {place}"),
        words => format!("one of {words} futexes from {}", variable.as_ref().unwrap_or(&object.address)),
    };
    if several {
        name.push_str(&format!(" of {}", word.pid));
    }
    object.name = unique(name, taken);
    object.variable = variable;
    object
}

/// Whether the thread's last wait was for the end of another thread.
pub(in crate::program) fn ends_joining(timeline: &Timeline, thread: &Thread) -> bool {
    let is_join = |wait: &Wait| matches!(wait.reason, WaitReason::Futex(futex) if timeline.is_thread_end(thread.pid, futex));
    thread.waits.last().is_some_and(is_join)
}
