//! Acquisitions without a record are put back (a method of longpole's own).
//!
//! A lock without probes shows in a recording only where a thread waits for it. Without the times when the lock was free,
//! waits would keep their recorded order, and more CPUs would seem to help although the lock is always held.
//!
//! 1. Events show when a thread got the lock after a wait, and when it woke the next waiter. It held the lock in between,
//!    which gives the distribution of hold times.
//! 2. Samples show how much of its running time a thread is in code that runs under the lock
//!    ([`crate::event::CodeFact::under`]).
//! 3. The part of that time outside of sections shown by events is divided into sections of the same lengths, evenly spread
//!    ([`fill`]). They are simulated as if recorded.
//!
//! A section spans sleeps of its thread under the lock ([`asleep`]). No section spans another wait or lies in another
//! section, so sections that are put back cannot deadlock.

mod asleep;
mod barriers;
mod chance;
mod clock;
mod fill;
mod futex_words;
mod joins;
mod lengths;
mod lock;
mod lock_samples;
mod permits;
mod read_write_locks;
mod sections;
mod write;

use super::model::{PutBack, Timeline};
use crate::event::ReadWrite;
use crate::finding::Finding;
use futex_words::Word;
use lengths::Lengths;
use lock::Lock;
use lock_samples::Calls;
use rustc_hash::FxHashMap;
use sections::{Kept, Made};
use std::collections::BTreeMap;

/// Largest number of sections that are estimated. If there are more, each stands for several.
const MOST_SECTIONS: u64 = 400_000;
/// Largest number of locks whose sections are estimated, those with the most waits first. Samples cannot distinguish
/// more.
const MOST_LOCKS: usize = 64;

/// Puts back missing operations where enough is known; reports the other locks.
pub(super) fn put_back(timeline: &mut Timeline) {
    let clocks: Vec<clock::Clock> = timeline.threads.iter().map(clock::Clock::of).collect();
    joins::put_back(timeline, &clocks);
    if timeline.stacks.is_empty() {
        return;
    }
    let calls = Calls::of(timeline);
    barriers::put_back(timeline, &calls, &clocks);
    let resources = permits::find(timeline, &calls);
    put_locks_back(timeline, &calls, &clocks);
    permits::write(timeline, &resources, &clocks);
}

fn put_locks_back(timeline: &mut Timeline, calls: &Calls, clocks: &[clock::Clock]) {
    let mut words = futex_words::find(timeline, calls);
    words.extend(read_write_locks::find(timeline, calls));
    if words.is_empty() {
        return;
    }
    words.sort_by_key(|word| (std::cmp::Reverse(word.waits), word.pid, word.address, word.side));
    let (locks, unmeasured) = measured(timeline, &words, calls, clocks);
    let asleep = asleep::find(timeline, &locks);
    let kept = sections::all(timeline, &locks, (calls, &asleep), clocks, MOST_SECTIONS);
    let numbers = write::write(timeline, &locks, &kept, clocks);
    let mut objects: BTreeMap<u32, Vec<(&Lock<'_>, &Made)>> = BTreeMap::new();
    for ((lock, made), number) in locks.iter().zip(&kept.by_lock).zip(numbers) {
        objects.entry(number).or_default().push((lock, made));
    }
    let facts: Vec<PutBack> = objects.iter().map(|(number, sides)| fact(*number, sides, clocks)).collect();
    timeline.findings.extend(findings(&facts, &unmeasured, &kept));
    timeline.put_back = facts;
}

/// The locks that can be put back, and the addresses of the others.
fn measured<'a>(
    timeline: &Timeline,
    words: &'a [Word],
    calls: &Calls,
    clocks: &[clock::Clock],
) -> (Vec<Lock<'a>>, Vec<u64>) {
    let (mut locks, mut unmeasured) = (Vec::new(), Vec::new());
    let of_word: Vec<Lengths> = words.iter().map(|word| Lengths::of(timeline, calls, word, clocks)).collect();
    let of_sides: FxHashMap<(u32, u64, Option<ReadWrite>), &Lengths> = words
        .iter()
        .zip(&of_word)
        .map(|(word, lengths)| ((word.pid, word.address, word.side), lengths))
        .collect();
    for (word, own) in words.iter().zip(&of_word) {
        let of_other =
            word.side.and_then(|side| of_sides.get(&(word.pid, word.address, Some(side.other()))).copied());
        let Some(lengths) = Lengths::better(own, of_other) else {
            unmeasured.push(word.address);
            continue;
        };
        if word.calls.is_empty() || locks.len() >= MOST_LOCKS {
            unmeasured.push(word.address);
            continue;
        }
        let (shares, share) = lock_samples::shares(timeline, calls, word, words);
        let users = || shares.iter().zip(clocks).filter(|(share, _)| **share > 0.0).map(|(_, clock)| clock);
        let ran_ns = users().map(|clock| clock.total_ns()).fold(0, u64::saturating_add);
        // Only one thread at a time holds a lock, so code that several threads run at once is not under it.
        let is_fit = word.side == Some(ReadWrite::Reading)
            || (share.part - share.error) * ran_ns as f64 <= clock::any_runs_ns(users()) as f64;
        if !is_fit || !own.agree(ran_ns, share.part + share.error) {
            unmeasured.push(word.address);
            continue;
        }
        locks.push(Lock { word, shares, share, lengths: lengths.clone() });
    }
    // If only one side of a read-write lock is known, simulated threads would hardly ever wait.
    let sides: Vec<(u32, u64)> =
        locks.iter().filter(|lock| lock.word.side.is_some()).map(Lock::key).collect();
    let is_whole = |lock: &Lock<'_>| {
        lock.word.side.is_none() || sides.iter().filter(|side| **side == lock.key()).count() == 2
    };
    unmeasured.extend(locks.iter().filter(|lock| !is_whole(lock)).map(|lock| lock.word.address));
    locks.retain(is_whole);
    unmeasured.sort_unstable();
    unmeasured.dedup();
    (locks, unmeasured)
}

/// Facts about an estimated object, from its one or two sides.
fn fact(number: u32, sides: &[(&Lock<'_>, &Made)], clocks: &[clock::Clock]) -> PutBack {
    let (seen, added) = sides.iter().fold((0, 0), |sum, (_, made)| (sum.0 + made.seen, sum.1 + made.added));
    let times = |made: &Made| (made.seen + made.added) as f64;
    let held = sides.iter().map(|(lock, made)| lock.lengths.mean_ns() as f64 * times(made)).sum::<f64>();
    let mut fact = PutBack {
        lock: number,
        seen,
        added,
        hold_ns: (held / ((seen + added) as f64).max(1.0)) as u64,
        ..PutBack::default()
    };
    if let [(lock, _)] = sides {
        (fact.share, fact.error, fact.hold_ns) = (lock.share.part, lock.share.error, lock.lengths.mean_ns());
        return fact;
    }
    let (mut held_ns, mut ran_ns) = (0.0, 0.0);
    for (thread, clock) in clocks.iter().enumerate() {
        let of = |(lock, _): &(&Lock<'_>, &Made)| lock.shares.get(thread).copied().unwrap_or(0.0);
        let share: f64 = sides.iter().map(of).sum();
        if share > 0.0 {
            held_ns += share * clock.total_ns() as f64;
            ran_ns += clock.total_ns() as f64;
        }
    }
    fact.share = held_ns / ran_ns.max(1.0);
    fact.error = sides.iter().map(|(lock, _)| lock.share.error.powi(2)).sum::<f64>().sqrt();
    fact
}

fn findings(facts: &[PutBack], unmeasured: &[u64], kept: &Kept) -> Vec<Finding> {
    let seen = facts.iter().map(|fact| fact.seen).sum();
    let added = facts.iter().map(|fact| fact.added).sum();
    let put_back =
        Finding::PutBack { locks: facts.len(), seen, added, each_stands_for: kept.each_stands_for };
    let mut findings = Vec::new();
    if seen > 0 || added > 0 {
        findings.push(put_back);
    }
    if !unmeasured.is_empty() {
        findings.push(Finding::HeldNotMeasured { locks: unmeasured.len() });
    }
    findings
}

#[cfg(test)]
mod tests;
