//! Estimates how long a lock is held each time, from waits, wake-ups and samples.

use super::super::model::{NO_STACK, StackSample, Timeline};
use super::chance::Chance;
use super::clock::Clock;
use super::futex_words::{Marks, Word};
use super::lock_samples::Calls;
use probe_abi::SampleReason;

/// Least number of known lengths from which the time of holding a lock is estimated.
const FEWEST_LENGTHS: usize = 5;

/// If a thread seems to hold a lock for more than this multiple of the usual length until it wakes a waiter, it has
/// released the lock and taken it again in between.
const LONGEST: u64 = 6;
/// If the median length is more than this many times the shortest tenth's, lengths are of several sections each. (For
/// exponentially distributed lengths, the ratio is 6.6.)
const MANY: u64 = 20;
/// Share of the samples in sections that may be in code which is not known to run under the lock; a few more are
/// allowed.
const ELSEWHERE: f64 = 0.05;
const FEW_ELSEWHERE: f64 = 2.0;
/// Further samples are in the code that takes and releases the lock, which runs for this long each time, nanoseconds.
const TAKING_NS: f64 = 3_000.0;
/// Largest share of the samples in sections that `ELSEWHERE` and `TAKING_NS` together may allow.
const MOST_ELSEWHERE: f64 = 0.25;
/// Largest number of lengths that are kept of one lock.
const MOST_LENGTHS: usize = 4096;

/// Lengths for which a lock is held at a time, from events; nanoseconds of running time.
#[derive(Clone, Debug, Default)]
pub(super) struct Lengths {
    pub(super) held: Vec<u64>,
    /// Whether samples confirm that most stretches from a wait to the next wake-up are a single section.
    is_sure: bool,
    /// Sum of all lengths from events, before `held` is thinned out.
    seen_ns: u64,
}

impl Lengths {
    /// Computes the lengths from stretches between getting the lock after a wait and waking the next waiter.
    pub(super) fn of(timeline: &Timeline, calls: &Calls, word: &Word, clocks: &[Clock]) -> Lengths {
        let mut lengths = Lengths::default();
        let mut stretches = Vec::new();
        for (&thread, marks) in &word.threads {
            let Some(clock) = clocks.get(thread as usize) else { continue };
            let ticks = ticks(timeline, thread as usize, clock);
            let ticks: Vec<(u64, bool)> = ticks
                .map(|(at, stack)| (at, calls.under(stack).iter().any(|call| word.calls.contains(call))))
                .collect();
            let mut got = None;
            for mark in in_order(marks) {
                match mark {
                    Mark::Wait(_, ran) => got = Some(clock.at(ran)),
                    Mark::Wake(time, _) => {
                        stretches.extend(got.take().map(|got| Stretch::of(&ticks, got, clock.at(time))));
                    }
                    Mark::Asleep(..) | Mark::Elsewhere(_) => {}
                }
            }
        }
        (lengths.held, lengths.is_sure) = single(stretches);
        usual(&mut lengths.held);
        lengths.seen_ns = lengths.held.iter().copied().fold(0, u64::saturating_add);
        thin(&mut lengths.held);
        lengths
    }

    /// Whether events and samples agree: threads that ran for `ran_ns` held the lock for at most the part `most` of it.
    ///
    /// If not, stretches from a wait to the next wake-up are no sections. A release without a waiter leaves no event, and for
    /// a lock with few waits most releases are like that.
    pub(super) fn agree(&self, ran_ns: u64, most: f64) -> bool {
        self.seen_ns as f64 <= ran_ns as f64 * most
    }

    /// The better known of two lengths, if any is known: a read-write lock's side may use the other side's.
    ///
    /// It matters more that the sides exclude each other than for how long at a time.
    pub(super) fn better<'a>(own: &'a Lengths, other: Option<&'a Lengths>) -> Option<&'a Lengths> {
        let known = |lengths: &&Lengths| lengths.held.len() >= FEWEST_LENGTHS;
        let both = || [Some(own), other].into_iter().flatten().filter(known);
        both().find(|lengths| lengths.is_sure).or_else(|| both().next())
    }

    pub(super) fn mean_ns(&self) -> u64 {
        let sum: u128 = self.held.iter().map(|&length| u128::from(length)).sum();
        u64::try_from(sum / (self.held.len().max(1) as u128)).unwrap_or(u64::MAX).max(1)
    }

    pub(super) fn longest(&self) -> u64 {
        self.held.last().copied().unwrap_or(0)
    }

    pub(super) fn one(lengths: &[u64], chance: &mut Chance) -> u64 {
        lengths.get(chance.below(lengths.len())).copied().unwrap_or(1).max(1)
    }
}

/// A stretch from a thread's acquisition of a lock until it wakes the next waiter.
#[derive(Clone, Copy, Debug)]
struct Stretch {
    length: u64,
    /// Number of samples in the stretch, and number of those in code that is not under the lock.
    ticks: usize,
    elsewhere: usize,
}

impl Stretch {
    /// The stretch from `from` until `until`. `ticks`: instants of samples in the thread's own clock, ascending, and
    /// whether they are under the lock.
    fn of(ticks: &[(u64, bool)], from: u64, until: u64) -> Stretch {
        let place = |time: u64| ticks.partition_point(|(at, _)| *at < time);
        let inside = ticks.get(place(from)..place(until)).unwrap_or_default();
        let elsewhere = inside.iter().filter(|(_, is_under)| !is_under).count();
        Stretch { length: until.saturating_sub(from), ticks: inside.len(), elsewhere }
    }
}

/// The lengths of stretches that are a single section, and whether most stretches are.
///
/// The shortest stretches are used, as many as samples agree with. In longer ones, samples find the thread outside: it
/// had released the lock without a waiter, which makes no event.
fn single(mut stretches: Vec<Stretch>) -> (Vec<u64>, bool) {
    stretches.sort_by_key(|stretch| stretch.length);
    let (mut ticks, mut elsewhere, mut agreed, mut all_ns) = (0, 0, 0, 0.0);
    for (number, stretch) in (1..).zip(&stretches) {
        ticks += stretch.ticks;
        elsewhere += stretch.elsewhere;
        all_ns += stretch.length as f64;
        let taking = TAKING_NS * number as f64 / f64::max(all_ns, 1.0);
        if elsewhere as f64 <= ticks as f64 * (ELSEWHERE + taking).min(MOST_ELSEWHERE) + FEW_ELSEWHERE {
            agreed = number;
        }
    }
    let lengths = stretches.iter().map(|stretch| stretch.length);
    // Code that takes and releases a lock is not under it, so samples show nothing about sections shorter than this
    // code.
    let held = if agreed < FEWEST_LENGTHS { lengths.collect() } else { lengths.take(agreed).collect() };
    (held, agreed * 2 > stretches.len())
}

/// Sorts lengths and removes those that stand for several sections.
///
/// After its last wait a thread may wake no other thread, so most stretches may contain several sections. Then the
/// short lengths, if they are far below the median, are those of single sections: sections of the same code do not
/// differ that much.
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
pub(super) enum Mark {
    /// A wait that got the lock, unless another thread was faster: its begin, and when the thread ran again.
    Wait(u64, u64),
    /// The thread released the lock and woke waiters: time of the first and of the last wake-up.
    Wake(u64, u64),
    /// A sleep with the lock held: its begin, and when the thread released the lock.
    Asleep(u64, u64),
    /// A wait for something else begins, which no section may span.
    Elsewhere(u64),
}

impl Mark {
    pub(super) fn time_ns(&self) -> u64 {
        match *self {
            Mark::Wait(time, _) | Mark::Wake(time, _) | Mark::Asleep(time, _) | Mark::Elsewhere(time) => time,
        }
    }
}

pub(super) fn in_order(marks: &Marks) -> Vec<Mark> {
    let waits = marks.waits.iter().map(|&(began, ran)| (began, Mark::Wait(began, ran)));
    let wakes = marks.wakes.iter().map(|&(first, last)| (first, Mark::Wake(first, last)));
    let mut all: Vec<(u64, Mark)> = waits.chain(wakes).collect();
    all.sort_by_key(|(time, _)| *time);
    all.into_iter().map(|(_, mark)| mark).collect()
}

/// A thread's samples of ticks: its own running time at each, and the stack.
pub(super) fn ticks<'a>(
    timeline: &'a Timeline,
    index: usize,
    clock: &'a Clock,
) -> impl Iterator<Item = (u64, u32)> + 'a {
    let is_tick = |seen: &&StackSample| seen.reason == SampleReason::Tick && seen.stack != NO_STACK;
    let samples = timeline.threads.get(index).map_or(&[][..], |thread| &thread.samples);
    samples.iter().filter(is_tick).map(|seen| (clock.at(seen.time.0), seen.stack))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Without this rule, the middle one of three locks would be estimated to be held for twice the time, half as
    /// often.
    #[test]
    fn a_stretch_with_samples_outside_the_lock_is_several_sections() {
        let one =
            |n: u64| Stretch { length: 40_000 + n, ticks: usize::from(n.is_multiple_of(10)), elsewhere: 0 };
        let several =
            |n: u64| Stretch { length: 240_000 + n, ticks: 1, elsewhere: usize::from(!n.is_multiple_of(3)) };
        let found = single((0..100).map(one).chain((0..100).map(several)).collect());
        assert!((100..=115).contains(&found.0.len()), "{}", found.0.len());
        let unsampled = |n: u64| Stretch { length: n, ticks: 0, elsewhere: 0 };
        assert_eq!(single((0..100).map(unsampled).collect()).0.len(), 100);
    }
}
