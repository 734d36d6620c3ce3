//! When each thread has which lock: as events show it, and between that as often as samples ask for.

use super::super::model::{NO_STACK, Seen, State, Timeline};
use super::clock::Clock;
use super::seen::Calls;
use super::words::{Marks, Word, word};
use super::{Chance, Lock};
use crate::time::Timestamp;
use probe_abi::SampleReason;
use rustc_hash::FxHashMap;

/// A thread that runs no longer than this between two waits for a lock has not got it: another one was first.
const TRIES_AGAIN_NS: u64 = 5_000;
/// A thread that wakes the next one after more than this many times the usual length had given the lock back, and taken it
/// again, meanwhile.
const LONGEST: u64 = 6;
/// If half of the lengths are more than this many times the tenth part's, they are several sections (of lengths by chance,
/// exponentially spread, it is 6.6 times).
const MANY: u64 = 20;
/// Sections for which there was no room, and which the next stretch gets: without a limit each would try all of them.
const MOST_DUE: f64 = 16.0;
/// Lengths kept of a lock.
const MOST_LENGTHS: usize = 4096;

/// How long a lock is held, and how long threads stay away from it, as events show it; nanoseconds of running.
#[derive(Clone, Debug, Default)]
pub(super) struct Lengths {
    held: Vec<u64>,
    apart: Vec<u64>,
    /// All that events show of its being held, before lengths are drawn from: these may be fewer.
    seen_ns: u64,
}

impl Lengths {
    /// From getting the lock after a wait to waking the next one, and from that to the next wait.
    pub(super) fn of(word: &Word, clocks: &[Clock]) -> Lengths {
        let mut lengths = Lengths::default();
        for (thread, marks) in &word.threads {
            let Some(clock) = clocks.get(*thread as usize) else { continue };
            let (mut got, mut gave) = (None, None);
            for mark in in_order(marks) {
                match mark {
                    Mark::Wait(began, ran) => {
                        let (began, ran) = (clock.at(began), clock.at(ran));
                        lengths.apart.extend(gave.take().map(|gave| began.saturating_sub(gave)));
                        got = Some(ran);
                    }
                    Mark::Wake(time) => {
                        let time = clock.at(time);
                        lengths.held.extend(got.take().map(|got| time.saturating_sub(got)));
                        gave = Some(time);
                    }
                    Mark::Elsewhere(_) => {}
                }
            }
        }
        usual(&mut lengths.held);
        usual(&mut lengths.apart);
        lengths.seen_ns = lengths.held.iter().copied().fold(0, u64::saturating_add);
        thin(&mut lengths.held);
        thin(&mut lengths.apart);
        lengths
    }

    /// Whether events and samples can both be right, if threads ran for so long and had the lock for at most this part of
    /// it. If not, what lies between a wait and the next wake-up is no section: a thread that gives the lock back to nobody
    /// leaves no event, and for a lock that is hardly ever waited for most do.
    pub(super) fn agree(&self, ran_ns: u64, most: f64) -> bool {
        self.seen_ns as f64 <= ran_ns as f64 * most
    }

    pub(super) fn count(&self) -> usize {
        self.held.len()
    }

    pub(super) fn mean_ns(&self) -> u64 {
        let sum: u128 = self.held.iter().map(|&length| u128::from(length)).sum();
        u64::try_from(sum / (self.held.len().max(1) as u128)).unwrap_or(u64::MAX).max(1)
    }

    fn longest(&self) -> u64 {
        self.held.last().copied().unwrap_or(0)
    }

    fn one(lengths: &[u64], chance: &mut Chance) -> u64 {
        lengths.get(chance.below(lengths.len())).copied().unwrap_or(1).max(1)
    }
}

/// Sorts lengths and leaves out those that are several. Where most are (a thread that has waited once more wakes nobody), the
/// short ones are those of one section, if there are many: sections of one code do not differ that much.
fn usual(lengths: &mut Vec<u64>) {
    lengths.retain(|&length| length > 0);
    lengths.sort_unstable();
    let part = |of: usize| lengths.get(lengths.len() / of).copied().unwrap_or(0);
    let (short, middle) = (part(10), part(2));
    let one = if middle > short.saturating_mul(MANY) { short } else { middle };
    lengths.retain(|&length| length <= one.saturating_mul(LONGEST));
}

/// Keeps at most [`MOST_LENGTHS`] of sorted lengths.
fn thin(lengths: &mut Vec<u64>) {
    if lengths.len() > MOST_LENGTHS {
        let step = lengths.len() / MOST_LENGTHS + 1;
        *lengths = lengths.iter().copied().step_by(step).collect();
    }
}

#[derive(Clone, Copy, Debug)]
enum Mark {
    /// A wait that got the lock, unless another one was first: begin, and when the thread ran again.
    Wait(u64, u64),
    Wake(u64),
    /// A wait for something else begins: no section spans it.
    Elsewhere(u64),
}

fn in_order(marks: &Marks) -> Vec<Mark> {
    let waits = marks.waits.iter().map(|&(began, ran)| (began, Mark::Wait(began, ran)));
    let wakes = marks.wakes.iter().map(|&time| (time, Mark::Wake(time)));
    let mut all: Vec<(u64, Mark)> = waits.chain(wakes).collect();
    all.sort_by_key(|(time, _)| *time);
    all.into_iter().map(|(_, mark)| mark).collect()
}

/// A thread has a lock; times in its own clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Section {
    /// Number of the lock.
    pub(super) lock: usize,
    /// Nanoseconds of running.
    pub(super) from_ns: u64,
    pub(super) until_ns: u64,
    /// The thread waited for it: since when, and until it ran again.
    pub(super) waited: Option<(u64, u64)>,
    /// It woke the next one at this time.
    pub(super) woke: Option<u64>,
    /// For how many it stands.
    pub(super) times: u32,
}

/// How many sections of a lock there are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Made {
    /// Shown by events.
    pub(super) seen: u64,
    /// Put back.
    pub(super) added: u64,
}

/// All sections.
#[derive(Clone, Debug, Default)]
pub(super) struct Kept {
    /// By thread, in order, none in another.
    pub(super) by_thread: Vec<Vec<Section>>,
    pub(super) by_lock: Vec<Made>,
    /// Each that was put back stands for so many.
    pub(super) each_stands_for: u64,
}

/// The sections of these locks, at most about so many put back.
pub(super) fn all(
    timeline: &Timeline,
    locks: &[Lock<'_>],
    calls: &Calls,
    clocks: &[Clock],
    most: u64,
) -> Kept {
    let mut kept = Kept { by_lock: vec![Made::default(); locks.len()], ..Kept::default() };
    let numbers: FxHashMap<(u32, u64), usize> =
        locks.iter().enumerate().map(|(number, lock)| ((lock.word.pid, lock.word.address), number)).collect();
    let wanted: f64 = locks
        .iter()
        .map(|lock| {
            let ran = lock
                .shares
                .iter()
                .zip(clocks)
                .map(|(share, clock)| share * clock.total_ns() as f64)
                .sum::<f64>();
            ran / lock.lengths.mean_ns() as f64
        })
        .sum();
    kept.each_stands_for = (wanted / most.max(1) as f64).ceil().clamp(1.0, 1e15) as u64;
    for (index, clock) in clocks.iter().enumerate() {
        let mut thread = OfThread { locks, index, chance: Chance(index as u64), each: kept.each_stands_for };
        let mut known = thread.known(timeline, clock, &numbers);
        thread.see(&mut known, ticks(timeline, index, clock, locks, calls));
        let sections = thread.filled(known, clock.total_ns());
        for section in &sections {
            if let Some(made) = kept.by_lock.get_mut(section.lock) {
                let is_seen = section.waited.is_some() || section.woke.is_some();
                made.seen += u64::from(is_seen);
                made.added += if is_seen { 0 } else { u64::from(section.times) };
            }
        }
        kept.by_thread.push(sections);
    }
    kept
}

/// Where a thread was in its own time when samples met it, and the lock that it was under.
fn ticks(
    timeline: &Timeline,
    index: usize,
    clock: &Clock,
    locks: &[Lock<'_>],
    calls: &Calls,
) -> Vec<(u64, Option<usize>)> {
    let Some(thread) = timeline.threads.get(index) else { return Vec::new() };
    let is_tick = |seen: &&Seen| seen.reason == SampleReason::Tick && seen.stack != NO_STACK;
    let lock = |stack: u32| {
        let under = calls.under(stack);
        let is_its = |lock: &Lock<'_>| {
            lock.word.pid == thread.pid && under.iter().any(|call| lock.word.calls.contains(call))
        };
        (!under.is_empty()).then(|| locks.iter().position(is_its)).flatten()
    };
    let ticks = thread.samples.iter().filter(is_tick);
    ticks.map(|seen| (clock.at(seen.time.0), lock(seen.stack))).collect()
}

struct OfThread<'a> {
    locks: &'a [Lock<'a>],
    index: usize,
    chance: Chance,
    each: u64,
}

/// What a thread is known to have had, and instants of its clock that no other section spans.
struct Known {
    sections: Vec<Section>,
    cuts: Vec<u64>,
}

impl OfThread<'_> {
    fn known(&mut self, timeline: &Timeline, clock: &Clock, numbers: &FxHashMap<(u32, u64), usize>) -> Known {
        let mut marks: Vec<(u64, usize, Mark)> = Vec::new();
        for (number, lock) in self.locks.iter().enumerate() {
            let own = lock.word.threads.get(&(self.index as u32));
            for mark in own.map(in_order).unwrap_or_default() {
                let (Mark::Wait(time, _) | Mark::Wake(time) | Mark::Elsewhere(time)) = mark;
                marks.push((time, number, mark));
            }
        }
        let thread = timeline.threads.get(self.index);
        let elsewhere = |(start, _, state): (Timestamp, _, State)| {
            let (State::Blocked(wait), Some(thread)) = (state, thread) else { return None };
            let own = thread.waits.get(wait as usize).and_then(word);
            let is_its = own.is_some_and(|address| numbers.contains_key(&(thread.pid, address)));
            (!is_its).then_some((start.0, 0, Mark::Elsewhere(start.0)))
        };
        marks.extend(thread.into_iter().flat_map(|thread| thread.spans()).filter_map(elsewhere));
        marks.sort_by_key(|(time, number, _)| (*time, *number));
        let mut known = Known { sections: Vec::new(), cuts: Vec::new() };
        let mut open: Option<Section> = None;
        for (_, number, mark) in marks {
            let Some(lock) = self.locks.get(number) else { continue };
            match mark {
                Mark::Elsewhere(time) => {
                    let at = clock.at(time);
                    let before = open.take();
                    known.close(before, self.locks, &mut self.chance, at);
                    known.cuts.push(at);
                }
                Mark::Wait(began, ran) => {
                    let at = clock.at(began);
                    if let Some(again) = open.as_mut().filter(|open| {
                        open.lock == number && at.saturating_sub(open.from_ns) < TRIES_AGAIN_NS
                    }) {
                        again.from_ns = clock.at(ran);
                        again.waited = again.waited.map(|(since, _)| (since, ran));
                        continue;
                    }
                    let before = open.take();
                    known.close(before, self.locks, &mut self.chance, at);
                    let from_ns = clock.at(ran);
                    let waited = Some((began, ran));
                    open = Some(Section {
                        lock: number,
                        from_ns,
                        until_ns: from_ns,
                        waited,
                        woke: None,
                        times: 1,
                    });
                }
                Mark::Wake(time) => {
                    let at = clock.at(time);
                    let fits = |open: &Section| {
                        open.lock == number && at.saturating_sub(open.from_ns) <= lock.lengths.longest()
                    };
                    let section = match open.take() {
                        Some(open) if fits(&open) => Section { until_ns: at, woke: Some(time), ..open },
                        other => {
                            let length = Lengths::one(&lock.lengths.held, &mut self.chance);
                            known.close(other, self.locks, &mut self.chance, at.saturating_sub(length));
                            let last = known.sections.last().map_or(0, |last| last.until_ns);
                            let last = last.max(known.cuts.last().copied().unwrap_or(0));
                            let from_ns = at.saturating_sub(length).max(last).min(at);
                            Section {
                                lock: number,
                                from_ns,
                                until_ns: at,
                                waited: None,
                                woke: Some(time),
                                times: 1,
                            }
                        }
                    };
                    known.sections.push(section);
                }
            }
        }
        known.close(open, self.locks, &mut self.chance, clock.total_ns());
        known
    }

    /// A thread has a lock where a sample met it under one, and none where a sample met it elsewhere.
    fn see(&mut self, known: &mut Known, ticks: Vec<(u64, Option<usize>)>) {
        let elsewhere = ticks.iter().filter(|(_, lock)| lock.is_none()).map(|(at, _)| *at);
        known.cuts.extend(elsewhere);
        known.cuts.sort_unstable();
        for (at, lock) in ticks {
            let Some((number, lock)) = lock.and_then(|number| Some((number, self.locks.get(number)?))) else {
                continue;
            };
            let next = known.sections.partition_point(|section| section.from_ns <= at);
            let before = next.checked_sub(1).and_then(|last| known.sections.get(last));
            if before.is_some_and(|before| before.until_ns > at) {
                continue;
            }
            let cut = known.cuts.partition_point(|&cut| cut <= at);
            let last_cut = cut.checked_sub(1).and_then(|last| known.cuts.get(last)).copied().unwrap_or(0);
            let low = before.map_or(0, |before| before.until_ns).max(last_cut);
            let high = known.sections.get(next).map_or(u64::MAX, |next| next.from_ns);
            let high = high.min(known.cuts.get(cut).copied().unwrap_or(u64::MAX));
            let length = Lengths::one(&lock.lengths.held, &mut self.chance).saturating_mul(self.each);
            let into = self.chance.next() % length.max(1);
            let from_ns = at.saturating_sub(into).max(low);
            let until_ns = from_ns.saturating_add(length).min(high);
            let times = u32::try_from(self.each).unwrap_or(u32::MAX);
            let section = Section { lock: number, from_ns, until_ns, waited: None, woke: None, times };
            known.sections.insert(next, section);
        }
    }

    /// The same with what is missing between them.
    fn filled(&mut self, known: Known, total_ns: u64) -> Vec<Section> {
        let mut edges: Vec<(u64, u64)> =
            known.sections.iter().map(|section| (section.from_ns, section.until_ns)).collect();
        edges.extend(known.cuts.iter().map(|&cut| (cut, cut)));
        edges.push((total_ns, total_ns));
        edges.sort_unstable();
        let mut free: Vec<(u64, u64)> = Vec::new();
        let mut at = 0;
        for (from, until) in edges {
            if from > at {
                free.push((at, from));
            }
            at = at.max(until);
        }
        let free_ns: u64 = free.iter().map(|(from, until)| until - from).sum();
        // What each lock still lacks, in sections for each nanosecond of free time.
        let rates: Vec<f64> = self
            .locks
            .iter()
            .enumerate()
            .map(|(number, lock)| {
                let own = known.sections.iter().filter(|section| section.lock == number);
                let had: u64 = own.map(|section| section.until_ns - section.from_ns).sum();
                let share = lock.shares.get(self.index).copied().unwrap_or(0.0);
                let lacks = (share * total_ns as f64 - had as f64).max(0.0);
                lacks / self.length(lock) / (free_ns.max(1) as f64)
            })
            .collect();
        let mut sections = known.sections;
        let mut due = vec![0.0; self.locks.len()];
        for (from, until) in free {
            let mut wanted: Vec<(usize, u64)> = Vec::new();
            for (number, (due, rate)) in due.iter_mut().zip(&rates).enumerate() {
                *due += rate * (until - from) as f64;
                while *due >= 1.0 {
                    *due -= 1.0;
                    let held = self.locks.get(number).map_or(&[][..], |lock| &lock.lengths.held);
                    let length = Lengths::one(held, &mut self.chance).saturating_mul(self.each);
                    wanted.push((number, length));
                }
            }
            let unplaced = self.place(wanted, (from, until), &mut sections);
            for number in unplaced {
                if let Some(due) = due.get_mut(number) {
                    *due = (*due + 1.0).min(MOST_DUE);
                }
            }
        }
        sections.sort_by_key(|section| (section.from_ns, section.until_ns));
        sections
    }

    fn length(&self, lock: &Lock<'_>) -> f64 {
        lock.lengths.mean_ns() as f64 * self.each as f64
    }

    /// Puts sections of these lengths into a stretch, apart as events show it. Gives the locks back for which there was no
    /// room.
    fn place(
        &mut self,
        mut wanted: Vec<(usize, u64)>,
        (from, until): (u64, u64),
        sections: &mut Vec<Section>,
    ) -> Vec<usize> {
        // Locks take turns by chance.
        for last in (1..wanted.len()).rev() {
            let other = self.chance.below(last + 1);
            wanted.swap(last, other);
        }
        let room = until - from;
        let mut held: u64 = wanted.iter().map(|(_, length)| *length).fold(0, u64::saturating_add);
        let mut unplaced = Vec::new();
        while held >= room
            && let Some((number, length)) = wanted.pop()
        {
            held = held.saturating_sub(length);
            unplaced.push(number);
        }
        if wanted.is_empty() {
            return unplaced;
        }
        let gaps: Vec<u64> = (0..=wanted.len())
            .map(|place| {
                let number = wanted.get(place).or(wanted.last()).map_or(0, |(number, _)| *number);
                let apart = self.locks.get(number).map_or(&[][..], |lock| &lock.lengths.apart);
                Lengths::one(apart, &mut self.chance)
            })
            .collect();
        let scale = (room - held) as f64 / gaps.iter().map(|&gap| gap as f64).sum::<f64>().max(1.0);
        let mut at = from as f64;
        for ((number, length), gap) in wanted.into_iter().zip(gaps) {
            at += gap as f64 * scale;
            let from_ns = (at as u64).min(until);
            let until_ns = from_ns.saturating_add(length).min(until);
            at = until_ns as f64;
            let times = u32::try_from(self.each).unwrap_or(u32::MAX);
            sections.push(Section { lock: number, from_ns, until_ns, waited: None, woke: None, times });
        }
        unplaced
    }
}

impl Known {
    /// A section of which nobody saw the end: as long as one that somebody saw, up to what the thread did next.
    fn close(&mut self, open: Option<Section>, locks: &[Lock<'_>], chance: &mut Chance, next_ns: u64) {
        let Some(open) = open else { return };
        let lengths = locks.get(open.lock).map_or(&[][..], |lock| &lock.lengths.held);
        let until_ns =
            open.from_ns.saturating_add(Lengths::one(lengths, chance)).min(next_ns.max(open.from_ns));
        self.sections.push(Section { until_ns, ..open });
    }
}
