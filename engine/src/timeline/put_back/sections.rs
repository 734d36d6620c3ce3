//! Finds when each thread holds which lock: where events show it, and in between as often as samples require.

use super::super::model::{State, StepKind, Timeline};
use super::asleep::AllAsleep;
use super::chance::Chance;
use super::clock::Clock;
use super::fill::Fill;
use super::futex_words::word;
use super::lengths::{Lengths, Mark, in_order, ticks};
use super::lock::Lock;
use super::lock_samples::Calls;
use crate::numbers::Numbers;
use crate::time::Timestamp;
use rustc_hash::FxHashSet;

/// If a thread runs no longer than this between two waits for a lock, ns, it did not get the lock: another thread was
/// faster.
const TRIES_AGAIN_NS: u64 = 5_000;
/// A writer waits for other writers, then for readers; at most this long between the two waits, nanoseconds.
const WAITS_AGAIN_NS: u64 = 20_000;

/// A thread holds a lock. Times are in the thread's own clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Section {
    /// Index of the lock.
    pub(super) lock: usize,
    /// Nanoseconds of running.
    pub(super) from_ns: u64,
    pub(super) until_ns: u64,
    /// The wait before the section: time at which it began, and time at which the thread ran again.
    pub(super) waited: Option<(u64, u64)>,
    /// Its wake-ups of waiters: time of the first and of the last.
    pub(super) woke: Option<(u64, u64)>,
    /// Number of sections for which this one stands.
    pub(super) times: u32,
}

impl Section {
    /// A section that begins at this instant; the end is not known yet.
    pub(super) fn new(lock: usize, from_ns: u64) -> Section {
        Section { lock, from_ns, until_ns: from_ns, waited: None, woke: None, times: 1 }
    }
}

/// Number of sections of a lock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Made {
    /// Shown by events.
    pub(super) seen: u64,
    /// Number of sections that were put back (estimated).
    pub(super) added: u64,
}

/// All sections.
#[derive(Clone, Debug, Default)]
pub(super) struct Kept {
    /// For each thread: its sections in order of time, not nested.
    pub(super) by_thread: Vec<Vec<Section>>,
    pub(super) by_lock: Vec<Made>,
    /// Number of sections for which each estimated one stands.
    pub(super) each_stands_for: u64,
}

/// The sections of these locks; about `most` of them at most are estimated.
pub(super) fn all(
    timeline: &Timeline,
    locks: &[Lock<'_>],
    (calls, asleep): (&Calls, &AllAsleep),
    clocks: &[Clock],
    most: u64,
) -> Kept {
    let mut kept = Kept { by_lock: vec![Made::default(); locks.len()], ..Kept::default() };
    let of_word = |lock: &Lock<'_>| {
        let pid = lock.word.pid;
        lock.word.addresses.clone().into_iter().map(move |address| (pid, address))
    };
    let words: FxHashSet<(u32, u64)> = locks.iter().flat_map(of_word).collect();
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
        let chance = Chance(Numbers::new(index as u64));
        let mut thread = OfThread { locks, asleep, index, chance, each: kept.each_stands_for };
        let known = thread.known(timeline, clock, &words);
        let ticks = ticks_under(timeline, index, clock, locks, calls);
        let sections = thread.filled(known, &ticks, clock.total_ns());
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

/// A thread's samples of ticks: its own running time at each, and the lock that it is under.
fn ticks_under(
    timeline: &Timeline,
    index: usize,
    clock: &Clock,
    locks: &[Lock<'_>],
    calls: &Calls,
) -> Vec<(u64, Option<usize>)> {
    let Some(thread) = timeline.threads.get(index) else { return Vec::new() };
    let lock = |stack: u32| {
        let under = calls.under(stack);
        let is_its = |lock: &Lock<'_>| {
            lock.word.pid == thread.pid && under.iter().any(|call| lock.word.calls.contains(call))
        };
        (!under.is_empty()).then(|| locks.iter().position(is_its)).flatten()
    };
    ticks(timeline, index, clock).map(|(at, stack)| (at, lock(stack))).collect()
}

pub(super) struct OfThread<'a> {
    pub(super) locks: &'a [Lock<'a>],
    asleep: &'a AllAsleep,
    pub(super) index: usize,
    pub(super) chance: Chance,
    pub(super) each: u64,
}

/// Sections of a thread that events show, and instants that no section may span.
#[derive(Default)]
struct Known {
    sections: Vec<Section>,
    cuts: Vec<u64>,
    /// A section without an end so far.
    open: Option<Section>,
    /// Last sleep in the open section, and when the thread released the lock.
    asleep: Option<(u64, u64)>,
}

impl OfThread<'_> {
    /// In order of time: the thread's waits for each lock, its wake-ups of waiters, and its waits for something else.
    fn marks(&self, timeline: &Timeline, words: &FxHashSet<(u32, u64)>) -> Vec<(usize, Mark)> {
        let mut marks: Vec<(u64, usize, Mark)> = Vec::new();
        for (number, lock) in self.locks.iter().enumerate() {
            let own = lock.word.threads.get(&(self.index as u32));
            for mark in own.map(in_order).unwrap_or_default() {
                marks.push((mark.time_ns(), number, mark));
            }
        }
        let thread = timeline.threads.get(self.index);
        let other = |(start, _, state): (Timestamp, _, State)| {
            let (State::Blocked(wait), Some(thread)) = (state, thread) else { return None };
            if let Some(asleep) = self.asleep.get(&(self.index as u32, start.0)) {
                return Some((start.0, asleep.lock, Mark::Asleep(start.0, asleep.released_ns)));
            }
            let own = thread.waits.get(wait as usize).and_then(word);
            let is_its = own.is_some_and(|address| words.contains(&(thread.pid, address)));
            (!is_its).then_some((start.0, 0, Mark::Elsewhere(start.0)))
        };
        marks.extend(thread.into_iter().flat_map(|thread| thread.spans()).filter_map(other));
        // A join that is put back is a wait on more CPUs.
        let joins = thread.into_iter().flat_map(|thread| &thread.steps);
        let joins = joins.filter(|step| matches!(step.kind, StepKind::Join(_)));
        marks.extend(joins.map(|step| (step.time.0, 0, Mark::Elsewhere(step.time.0))));
        marks.sort_by_key(|(time, number, _)| (*time, *number));
        marks.into_iter().map(|(_, number, mark)| (number, mark)).collect()
    }

    fn known(&mut self, timeline: &Timeline, clock: &Clock, words: &FxHashSet<(u32, u64)>) -> Known {
        let mut known = Known::default();
        for (number, mark) in self.marks(timeline, words) {
            let Some(lock) = self.locks.get(number) else { continue };
            let again_within_ns = lock.word.side.map_or(TRIES_AGAIN_NS, |_| WAITS_AGAIN_NS);
            match mark {
                Mark::Elsewhere(time) => {
                    let at = clock.at(time);
                    known.close(self, at);
                    known.cuts.push(at);
                }
                Mark::Asleep(time, released_ns) => known.asleep(self, number, clock.at(time), released_ns),
                Mark::Wait(began, ran) => {
                    let at = clock.at(began);
                    let is_again = |open: &&mut Section| {
                        open.lock == number && at.saturating_sub(open.from_ns) < again_within_ns
                    };
                    if let Some(again) = known.open.as_mut().filter(is_again) {
                        again.from_ns = clock.at(ran);
                        again.waited = again.waited.map(|(since, _)| (since, ran));
                        continue;
                    }
                    known.close(self, at);
                    let waited = Some((began, ran));
                    known.open = Some(Section { waited, ..Section::new(number, clock.at(ran)) });
                }
                Mark::Wake(time, last_time) => {
                    let (at, until_ns) = (clock.at(time), clock.at(last_time));
                    if !known.is_open(lock, number, at, time) {
                        let length = self.drawn(number);
                        known.close(self, at.saturating_sub(length));
                        known.open =
                            Some(Section::new(number, known.free(at.saturating_sub(length)).min(at)));
                    }
                    let woke = Some((time, last_time));
                    let section = known.open.take().map(|open| Section { until_ns, woke, ..open });
                    known.sections.extend(section);
                    known.asleep = None;
                }
            }
        }
        known.close(self, clock.total_ns());
        known
    }

    /// The length of a section of the lock.
    fn drawn(&mut self, lock: usize) -> u64 {
        let held = self.locks.get(lock).map_or(&[][..], |lock| &lock.lengths.held);
        Lengths::one(held, &mut self.chance)
    }

    /// The known sections, with estimated ones in between.
    fn filled(&mut self, known: Known, ticks: &[(u64, Option<usize>)], total_ns: u64) -> Vec<Section> {
        let mut edges: Vec<(u64, u64, Option<Section>)> = known
            .sections
            .into_iter()
            .map(|section| (section.from_ns, section.until_ns, Some(section)))
            .chain(known.cuts.into_iter().chain([total_ns]).map(|cut| (cut, cut, None)))
            .collect();
        edges.sort_by_key(|(from, until, _)| (*from, *until));
        let mut fill = Fill::new(self, ticks);
        for (from, until, section) in edges {
            fill.up_to(from);
            fill.jump(until, section);
        }
        fill.sections
    }
}

impl Known {
    /// The earliest instant from `from_ns` on at which a further section may begin.
    fn free(&self, from_ns: u64) -> u64 {
        let last = self.sections.last().map_or(0, |last| last.until_ns);
        from_ns.max(last).max(self.cuts.last().copied().unwrap_or(0))
    }

    /// Whether the open section lasts until this instant. `released_ns`: when the thread releases the lock.
    fn is_open(&self, lock: &Lock<'_>, number: usize, at: u64, released_ns: u64) -> bool {
        let is_same = self.asleep.is_some_and(|(_, released)| released == released_ns);
        let fits = |open: &Section| at.saturating_sub(open.from_ns) <= lock.lengths.longest();
        self.open.as_ref().is_some_and(|open| open.lock == number && (is_same || fits(open)))
    }

    /// The thread sleeps while it holds a lock, which it releases later.
    fn asleep(&mut self, thread: &mut OfThread<'_>, number: usize, at: u64, released_ns: u64) {
        let Some(lock) = thread.locks.get(number) else { return };
        if !self.is_open(lock, number, at, released_ns) {
            // It is not known where in its section the thread sleeps, so the middle is assumed.
            let from_ns = at.saturating_sub(thread.drawn(number) / 2);
            self.close(thread, from_ns);
            let from_ns = self.free(from_ns);
            if from_ns >= at {
                self.cuts.push(at);
                return;
            }
            self.open = Some(Section::new(number, from_ns));
        }
        self.asleep = Some((at, released_ns));
    }

    /// Ends an open section whose end is not known: after a drawn length, but before the thread's next mark.
    fn close(&mut self, thread: &mut OfThread<'_>, next_ns: u64) {
        let (open, asleep) = (self.open.take(), self.asleep.take());
        let Some(open) = open else { return };
        // The section lasts until after its last sleep.
        let least_ns = asleep.map_or(open.from_ns, |(at, _)| at + 1);
        let until_ns = open.from_ns.saturating_add(thread.drawn(open.lock)).min(next_ns).max(least_ns);
        self.sections.push(Section { until_ns, ..open });
    }
}
