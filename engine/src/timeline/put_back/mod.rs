//! Acquisitions without a record are put back (ours). A lock without probes shows in a recording only where a
//! thread waits for it. Without all the times when it was free, the order of waits would stay as recorded,
//! and more CPUs would seem to help where the lock is held all the time.
//!
//! Three things are known. Events: when a thread got the lock after waiting, and when it woke the next
//! waiter; it held the lock in between, which gives the distribution of hold times. Samples: how much of its
//! running time a thread is in code that runs under the lock ([`crate::event::CodeFact::under`]), with or
//! without a wait. The part of that time that is not in sections shown by events is divided into sections of
//! the same lengths, spread evenly over the time between ([`fill`]). They become operations as if they had
//! been recorded, and are simulated like those.
//!
//! No section spans a wait for anything else, and none lies in another: what is put back cannot deadlock.

mod barriers;
mod chance;
mod clock;
mod fill;
mod futex_words;
mod lengths;
mod lock;
mod lock_samples;
mod sections;
mod write;

use super::model::{PutBack, Timeline};
use crate::finding::Finding;
use futex_words::Word;
use lengths::{FEWEST_LENGTHS, Lengths};
use lock::Lock;
use lock_samples::Calls;
use sections::Kept;

/// Most sections that are put back: of more, one stands for several.
const MOST_SECTIONS: u64 = 400_000;
/// Locks that are put back, those with the longest waits: samples cannot tell more apart.
const MOST_LOCKS: usize = 64;

/// Puts back what is missing, as far as it is known; reports the locks for which it is not.
pub(super) fn put_back(timeline: &mut Timeline) {
    if timeline.stacks.is_empty() {
        return;
    }
    let calls = Calls::of(timeline);
    let clocks: Vec<clock::Clock> = timeline.threads.iter().map(clock::Clock::of).collect();
    barriers::put_back(timeline, &calls, &clocks);
    let words = futex_words::find(timeline, &calls);
    if words.is_empty() {
        return;
    }
    let (locks, unmeasured) = measured(timeline, &words, &calls, &clocks);
    let kept = sections::all(timeline, &locks, &calls, &clocks, MOST_SECTIONS);
    let facts: Vec<PutBack> = locks.iter().zip(&kept.by_lock).map(|(lock, made)| fact(lock, made)).collect();
    let numbers = write::write(timeline, &locks, &kept, &clocks);
    timeline.findings.extend(findings(&facts, &unmeasured, &kept));
    timeline.put_back = facts.into_iter().zip(numbers).map(|(fact, lock)| PutBack { lock, ..fact }).collect();
}

/// The locks about which enough is known, and addresses of the others.
fn measured<'a>(
    timeline: &Timeline,
    words: &'a [Word],
    calls: &Calls,
    clocks: &[clock::Clock],
) -> (Vec<Lock<'a>>, Vec<u64>) {
    let (mut locks, mut unmeasured) = (Vec::new(), Vec::new());
    for word in words {
        let lengths = Lengths::of(timeline, calls, word, clocks);
        if word.calls.is_empty() || lengths.count() < FEWEST_LENGTHS || locks.len() >= MOST_LOCKS {
            unmeasured.push(word.address);
            continue;
        }
        let (shares, share) = lock_samples::shares(timeline, calls, word, words);
        let users = || shares.iter().zip(clocks).filter(|(share, _)| **share > 0.0).map(|(_, clock)| clock);
        let ran_ns = users().map(|clock| clock.total_ns()).fold(0, u64::saturating_add);
        // One thread has it at a time: code that several are in at once is not under it.
        let is_one_at_a_time =
            (share.part - share.error) * ran_ns as f64 <= clock::any_runs_ns(users()) as f64;
        if !is_one_at_a_time || !lengths.agree(ran_ns, share.part + share.error) {
            unmeasured.push(word.address);
            continue;
        }
        locks.push(Lock { word, shares, share, lengths });
    }
    (locks, unmeasured)
}

fn fact(lock: &Lock<'_>, made: &sections::Made) -> PutBack {
    PutBack {
        lock: 0,
        share: lock.share.part,
        error: lock.share.error,
        seen: made.seen,
        added: made.added,
        hold_ns: lock.lengths.mean_ns(),
    }
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
