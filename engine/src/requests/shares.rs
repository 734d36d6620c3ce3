//! How samples divide the requests' computing, and that of threads for which they waited, among functions.

use super::cause::Cause;
use super::groups::GROUPS;
use super::names::Namer;
use super::sampled::Work;
use super::sums::{Hits, Sums};
use crate::program::FunctionRef;
use rustc_hash::FxHashMap;

/// The part of a key's time that samples assign to a function.
#[derive(Clone, Copy, Debug)]
pub(super) struct Share {
    pub(super) work: Work,
    /// Share of the time, from 0 to 1.
    pub(super) part: f64,
    /// Variance of `part`.
    pub(super) variance: f64,
}

/// How samples divide the computing of each key in each group.
pub(super) struct Shares(FxHashMap<(usize, u32), Vec<Share>>);

impl Shares {
    pub(super) fn of(namer: &Namer<'_>, sums: &Sums) -> Shares {
        let mut shares = FxHashMap::default();
        for (number, key, _) in sums.all() {
            let top = match key.cause {
                Cause::Computing(top) => top,
                Cause::Queued => None,
                _ => continue,
            };
            let all: Vec<(usize, &Hits)> = (0..GROUPS)
                .filter_map(|group| Some((group, sums.hits.get(&(group, number))?)))
                .filter(|(_, hits)| hits.samples() > 0)
                .collect();
            for group in 0..GROUPS {
                // A group without samples is divided like the other groups together.
                let own: Vec<&Hits> = match all.iter().find(|(other, _)| *other == group) {
                    Some((_, hits)) => vec![hits],
                    None => all.iter().map(|(_, hits)| *hits).collect(),
                };
                shares.insert((group, number), divided(namer, &own, top));
            }
        }
        Shares(shares)
    }

    pub(super) fn at(&self, group: usize, number: u32) -> &[Share] {
        self.0.get(&(group, number)).map_or(&[], Vec::as_slice)
    }

    /// The share of a key's time in a group that belongs to the function `name`.
    pub(super) fn part(&self, namer: &Namer<'_>, group: usize, number: u32, name: &str) -> f64 {
        let own = self.at(group, number).iter().filter(|share| namer.work(share.work) == name);
        own.map(|share| share.part).sum()
    }
}

/// Divides a key's time by samples; without samples all of it belongs to the innermost function with probes. The variance of a
/// share p of n samples is p(1−p)/n. There p has one more sample, half of it in the function: a single sample is not certain.
fn divided(namer: &Namer<'_>, hits: &[&Hits], top: Option<FunctionRef>) -> Vec<Share> {
    let mut counts: FxHashMap<Work, u64> = FxHashMap::default();
    for (stack, count) in hits.iter().flat_map(|hits| &hits.stacks) {
        *counts.entry(namer.work_of(*stack, top)).or_insert(0) += u64::from(*count);
    }
    let all: u64 = counts.values().sum();
    if all == 0 {
        return vec![Share { work: Work::Function(top), part: 1.0, variance: 0.0 }];
    }
    let samples = hits.iter().map(|hits| hits.samples()).sum::<usize>().max(1) as f64;
    let mut shares: Vec<Share> = counts
        .into_iter()
        .map(|(work, count)| {
            let part = count as f64 / all as f64;
            let seen = (part * samples + 0.5) / (samples + 1.0);
            Share { work, part, variance: seen * (1.0 - seen) / samples }
        })
        .collect();
    shares.sort_by_key(|share| share.work);
    shares
}
