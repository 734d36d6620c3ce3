//! Read-write locks among the futex words. Each becomes two locks: taken for reading, and taken for writing. A C
//! library's lock has several words; the function in which a thread waits shows its side, and the word does not.

use super::super::model::{NO_STACK, Timeline, Wake, Wakeup};
use super::futex_words::{Marks, Slept, Word, sleeps};
use super::lock_samples::{CallId, Calls};
use crate::event::{ReadWrite, read_write_words};
use probe_abi::SampleReason;
use rustc_hash::FxHashMap;
use std::collections::{BTreeMap, BTreeSet};

/// If one release wakes several threads, each follows the one before within this time, nanoseconds.
const NEXT_WITHIN_NS: u64 = 20_000;

/// Process, and address of the lock's first word.
type Key = (u32, u64);

/// A read-write lock.
#[derive(Clone, Debug, Default)]
struct Lock {
    addresses: BTreeSet<u64>,
    first: Option<(u64, u32)>,
    /// Calls in which threads waited to read, and to write.
    reading: BTreeSet<CallId>,
    writing: BTreeSet<CallId>,
    /// For each thread: its waits in order of time.
    waits: BTreeMap<u32, Vec<Waited>>,
    /// For each thread: times at which it woke others, and the side that it held then.
    wakes: BTreeMap<u32, Vec<(u64, ReadWrite)>>,
    /// For each thread: number of samples in code under a reading call, and under a writing call.
    samples: FxHashMap<u32, [usize; 2]>,
}

#[derive(Clone, Copy, Debug)]
struct Waited {
    began_ns: u64,
    ran_ns: u64,
    wants: ReadWrite,
}

/// The two sides of each read-write lock without recorded operations.
pub(super) fn find(timeline: &Timeline, calls: &Calls) -> Vec<Word> {
    let wants = |stack: Option<u32>| stack.and_then(|stack| calls.read_write(stack));
    let all: Vec<Slept<'_>> = sleeps(timeline).collect();
    let reach = all.iter().filter_map(|slept| wants(slept.stack).map(|(_, bytes)| (slept.key, bytes)));
    let firsts = read_write_words(&reach.collect());
    if firsts.is_empty() {
        return Vec::new();
    }
    let together = Together::of(timeline, &all);
    // For each word: number of waits ended by single wake-ups that are known to be for reading, and for writing.
    let mut known: FxHashMap<Key, [usize; 2]> = FxHashMap::default();
    for slept in all.iter().filter(|slept| !together.has(timeline, slept)) {
        if let Some((side, _)) = wants(slept.stack) {
            known.entry(slept.key).or_default()[index(side)] += 1;
        }
    }
    let mut locks: BTreeMap<Key, Lock> = BTreeMap::new();
    let mut waiters: FxHashMap<(u32, u32), (Key, ReadWrite)> = FxHashMap::default();
    for slept in &all {
        let Some(first) = firsts.get(&slept.key) else { continue };
        let key = (slept.key.0, *first);
        let lock = locks.entry(key).or_default();
        lock.addresses.insert(slept.key.1);
        let began = (slept.start_ns, slept.index);
        lock.first = Some(lock.first.map_or(began, |first| first.min(began)));
        let usual = || match together.has(timeline, slept) {
            true => ReadWrite::Reading,
            false => more(known.get(&slept.key).copied().unwrap_or_default()),
        };
        let wanted = wants(slept.stack);
        let side = wanted.map_or_else(usual, |(side, _)| side);
        if wanted.is_some() {
            let takes = slept.stack.into_iter().flat_map(|stack| calls.takes(stack));
            lock.calls(side).extend(takes);
        }
        let waited = Waited { began_ns: slept.start_ns, ran_ns: slept.ran_ns, wants: side };
        lock.waits.entry(slept.index).or_default().push(waited);
        waiters.insert((slept.index, slept.number), (key, side));
    }
    for lock in locks.values_mut() {
        // A call that holds another lock around both sides shows neither side.
        let both: Vec<CallId> = lock.reading.intersection(&lock.writing).copied().collect();
        lock.reading.retain(|call| !both.contains(call));
        lock.writing.retain(|call| !both.contains(call));
    }
    for wakeup in &timeline.wakeups {
        let waiter = wakeup.ended.and_then(|wait| waiters.get(&(wakeup.wakee, wait)));
        let Some((key, wanted)) = waiter else { continue };
        let Some(lock) = locks.get_mut(key) else { continue };
        let had = match wanted {
            // A reader only waits for a writer.
            ReadWrite::Reading => ReadWrite::Writing,
            ReadWrite::Writing => lock.had(timeline, calls, wakeup.waker, wakeup.time.0),
        };
        lock.wakes.entry(wakeup.waker).or_default().push((wakeup.time.0, had));
    }
    let sides =
        |(key, lock): (Key, Lock)| [ReadWrite::Reading, ReadWrite::Writing].map(|side| lock.side(key, side));
    locks.into_iter().flat_map(sides).collect()
}

/// Wake-ups by word and waker. Several at once are of readers, since a release passes the lock to one writer.
struct Together(FxHashMap<(Key, u32), Vec<u64>>);

impl Together {
    fn of(timeline: &Timeline, all: &[Slept<'_>]) -> Together {
        let mut times: FxHashMap<(Key, u32), Vec<u64>> = FxHashMap::default();
        for slept in all {
            if let Some(wakeup) = wakeup(timeline, slept) {
                times.entry((slept.key, wakeup.waker)).or_default().push(wakeup.time.0);
            }
        }
        times.values_mut().for_each(|times| times.sort_unstable());
        Together(times)
    }

    /// Whether the waker woke others at the word at about the same time.
    fn has(&self, timeline: &Timeline, slept: &Slept<'_>) -> bool {
        let Some(wakeup) = wakeup(timeline, slept) else { return false };
        let times = self.0.get(&(slept.key, wakeup.waker)).map_or(&[][..], Vec::as_slice);
        let from = times.partition_point(|time| *time < wakeup.time.0.saturating_sub(NEXT_WITHIN_NS));
        let until = times.partition_point(|time| *time <= wakeup.time.0.saturating_add(NEXT_WITHIN_NS));
        until - from > 1
    }
}

fn wakeup<'t>(timeline: &'t Timeline, slept: &Slept<'_>) -> Option<&'t Wakeup> {
    let Wake::By(wakeup) = slept.wait.wake else { return None };
    timeline.wakeups.get(wakeup as usize)
}

fn index(side: ReadWrite) -> usize {
    match side {
        ReadWrite::Reading => 0,
        ReadWrite::Writing => 1,
    }
}

fn more([reading, writing]: [usize; 2]) -> ReadWrite {
    if reading >= writing { ReadWrite::Reading } else { ReadWrite::Writing }
}

impl Lock {
    fn calls(&mut self, side: ReadWrite) -> &mut BTreeSet<CallId> {
        match side {
            ReadWrite::Reading => &mut self.reading,
            ReadWrite::Writing => &mut self.writing,
        }
    }

    /// The side that a thread which wakes a writer held: that of its last wait if it has woken no thread since, else
    /// the side under which samples find it more often.
    fn had(&mut self, timeline: &Timeline, calls: &Calls, waker: u32, time_ns: u64) -> ReadWrite {
        let waits = self.waits.get(&waker).map_or(&[][..], Vec::as_slice);
        let before = waits.partition_point(|waited| waited.ran_ns <= time_ns);
        let last = before.checked_sub(1).and_then(|last| waits.get(last));
        let woke_ns = self.wakes.get(&waker).and_then(|wakes| wakes.last()).map_or(0, |wake| wake.0);
        if let Some(last) = last.filter(|last| last.ran_ns > woke_ns) {
            return last.wants;
        }
        let (reading, writing) = (&self.reading, &self.writing);
        let counted = || {
            let mut counts = [0; 2];
            let samples = timeline.threads.get(waker as usize).map_or(&[][..], |thread| &thread.samples);
            let ticks = samples.iter().filter(|seen| seen.reason == SampleReason::Tick);
            for seen in ticks.filter(|seen| seen.stack != NO_STACK) {
                let under = calls.under(seen.stack);
                counts[0] += usize::from(under.iter().any(|call| reading.contains(call)));
                counts[1] += usize::from(under.iter().any(|call| writing.contains(call)));
            }
            counts
        };
        more(*self.samples.entry(waker).or_insert_with(counted))
    }

    fn side(&self, (pid, address): Key, side: ReadWrite) -> Word {
        let mut threads: BTreeMap<u32, Marks> = BTreeMap::new();
        let mut count = 0;
        for (thread, waits) in &self.waits {
            for waited in waits.iter().filter(|waited| waited.wants == side) {
                threads.entry(*thread).or_default().waits.push((waited.began_ns, waited.ran_ns));
                count += 1;
            }
        }
        for (thread, wakes) in &self.wakes {
            for (time, _) in wakes.iter().filter(|(_, had)| *had == side) {
                let wakes = &mut threads.entry(*thread).or_default().wakes;
                match wakes.last_mut() {
                    // One release wakes all readers, so their wake-ups are joined.
                    Some(last) if *time <= last.1.saturating_add(NEXT_WITHIN_NS) => last.1 = *time,
                    _ => wakes.push((*time, *time)),
                }
            }
        }
        let calls = match side {
            ReadWrite::Reading => &self.reading,
            ReadWrite::Writing => &self.writing,
        };
        Word {
            pid,
            address,
            addresses: self.addresses.clone(),
            side: Some(side),
            first: self.first.unwrap_or_default(),
            calls: calls.clone(),
            threads,
            waits: count,
        }
    }
}
