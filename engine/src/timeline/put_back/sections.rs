//! When each thread has which lock: as events show it, and between that as often as samples ask for.

use super::super::model::{State, StepKind, Timeline};
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

/// A thread that runs no longer than this between two waits for a lock has not got it: another one was first.
const TRIES_AGAIN_NS: u64 = 5_000;
/// A writer waits for other writers first, and then for readers: so long between the two.
const WAITS_AGAIN_NS: u64 = 20_000;

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
    /// It woke the next ones: the first, and the last of them.
    pub(super) woke: Option<(u64, u64)>,
    /// How many it stands for.
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
    /// Each estimated section stands for this many.
    pub(super) each_stands_for: u64,
}

/// The sections of these locks, with at most about `most` estimated ones.
pub(super) fn all(
    timeline: &Timeline,
    locks: &[Lock<'_>],
    calls: &Calls,
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
        let mut thread =
            OfThread { locks, index, chance: Chance(Numbers::new(index as u64)), each: kept.each_stands_for };
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

/// Where a thread was in its own time when samples met it, and the lock that it was under.
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
    pub(super) index: usize,
    pub(super) chance: Chance,
    pub(super) each: u64,
}

/// What a thread is known to have had, and instants of its clock that no other section spans.
struct Known {
    sections: Vec<Section>,
    cuts: Vec<u64>,
}

impl OfThread<'_> {
    /// When the thread waited for each lock or woke a waiter of it, and when it waited for something else, in order.
    fn marks(&self, timeline: &Timeline, words: &FxHashSet<(u32, u64)>) -> Vec<(usize, Mark)> {
        let mut marks: Vec<(u64, usize, Mark)> = Vec::new();
        for (number, lock) in self.locks.iter().enumerate() {
            let own = lock.word.threads.get(&(self.index as u32));
            for mark in own.map(in_order).unwrap_or_default() {
                let (Mark::Wait(time, _) | Mark::Wake(time, _) | Mark::Elsewhere(time)) = mark;
                marks.push((time, number, mark));
            }
        }
        let thread = timeline.threads.get(self.index);
        let elsewhere = |(start, _, state): (Timestamp, _, State)| {
            let (State::Blocked(wait), Some(thread)) = (state, thread) else { return None };
            let own = thread.waits.get(wait as usize).and_then(word);
            let is_its = own.is_some_and(|address| words.contains(&(thread.pid, address)));
            (!is_its).then_some((start.0, 0, Mark::Elsewhere(start.0)))
        };
        marks.extend(thread.into_iter().flat_map(|thread| thread.spans()).filter_map(elsewhere));
        // A join that is put back is a wait where there are more CPUs.
        let joins = thread.into_iter().flat_map(|thread| &thread.steps);
        let joins = joins.filter(|step| matches!(step.kind, StepKind::Join(_)));
        marks.extend(joins.map(|step| (step.time.0, 0, Mark::Elsewhere(step.time.0))));
        marks.sort_by_key(|(time, number, _)| (*time, *number));
        marks.into_iter().map(|(_, number, mark)| (number, mark)).collect()
    }

    fn known(&mut self, timeline: &Timeline, clock: &Clock, words: &FxHashSet<(u32, u64)>) -> Known {
        let mut known = Known { sections: Vec::new(), cuts: Vec::new() };
        let mut open: Option<Section> = None;
        for (number, mark) in self.marks(timeline, words) {
            let Some(lock) = self.locks.get(number) else { continue };
            let again_within_ns = lock.word.side.map_or(TRIES_AGAIN_NS, |_| WAITS_AGAIN_NS);
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
                        open.lock == number && at.saturating_sub(open.from_ns) < again_within_ns
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
                Mark::Wake(time, last_time) => {
                    let (at, until_ns) = (clock.at(time), clock.at(last_time));
                    let woke = Some((time, last_time));
                    let fits = |open: &Section| {
                        open.lock == number && at.saturating_sub(open.from_ns) <= lock.lengths.longest()
                    };
                    let section = match open.take() {
                        Some(open) if fits(&open) => Section { until_ns, woke, ..open },
                        other => {
                            let length = Lengths::one(&lock.lengths.held, &mut self.chance);
                            known.close(other, self.locks, &mut self.chance, at.saturating_sub(length));
                            let last = known.sections.last().map_or(0, |last| last.until_ns);
                            let last = last.max(known.cuts.last().copied().unwrap_or(0));
                            let from_ns = at.saturating_sub(length).max(last).min(at);
                            Section { lock: number, from_ns, until_ns, waited: None, woke, times: 1 }
                        }
                    };
                    known.sections.push(section);
                }
            }
        }
        known.close(open, self.locks, &mut self.chance, clock.total_ns());
        known
    }

    /// The same with what is missing between them.
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
    /// A section without a known end: as long as one with a known end, up to what the thread did next.
    fn close(&mut self, open: Option<Section>, locks: &[Lock<'_>], chance: &mut Chance, next_ns: u64) {
        let Some(open) = open else { return };
        let lengths = locks.get(open.lock).map_or(&[][..], |lock| &lock.lengths.held);
        let until_ns =
            open.from_ns.saturating_add(Lengths::one(lengths, chance)).min(next_ns.max(open.from_ns));
        self.sections.push(Section { until_ns, ..open });
    }
}
