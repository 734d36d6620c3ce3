//! Divides parts of functions' time by samples. The time of a part is exact. Functions get shares in proportion to the part's
//! samples, as integers, so that the sum stays the same. Each share has the half-width of its 95 % interval
//! ([`crate::attribution`]).

use super::balance::{Balance, Meter};
use super::clock::{PHASES, Phase, at};
use crate::attribution::{Errors, Keys, NO_KEY, Share, View, divide_sampled, part};
use rustc_hash::FxHashMap;

/// Shares of the rows that the samples of some time show.
#[derive(Clone, Debug, Default)]
pub(super) struct Shares {
    shares: Vec<Share>,
    /// Number of samples.
    samples: u32,
    /// Pairs of caller row and callee row in the samples, and how often each occurs.
    arcs: Vec<((u32, u32), u32)>,
}

impl Shares {
    /// Shares by these samples. Without samples all time belongs to `top`. If `below` is a row, it counts as the caller
    /// of each sample's outermost function.
    pub(super) fn of<'v>(
        keys: &Keys,
        top: u32,
        below: u32,
        seen: impl Iterator<Item = (&'v View, u32)> + Clone,
    ) -> Shares {
        let mut arcs: FxHashMap<(u32, u32), u32> = FxHashMap::default();
        for (view, count) in seen.clone() {
            let outermost = view.within.last().copied().map(|row| (below, row));
            let pairs = view.within.windows(2).map(|pair| (pair[1], pair[0]));
            for (caller, callee) in pairs.chain(outermost.filter(|(below, _)| *below != NO_KEY)) {
                *arcs.entry((caller, callee)).or_insert(0) += count;
            }
        }
        let samples = seen.clone().map(|(_, count)| count).sum();
        Shares { shares: divide_sampled(keys, top, seen), samples, arcs: arcs.into_iter().collect() }
    }
}

/// A part of functions' time, with the samples that divide it.
#[derive(Clone, Debug, Default)]
pub(super) struct Part<'s> {
    /// Its row in the accounts.
    pub(super) row: u32,
    /// The row that the time belongs to without samples.
    pub(super) top: u32,
    /// Shares by place of the number of busy processors; `None`: too few samples.
    pub(super) levels: Vec<Option<&'s Shares>>,
    /// Shares for places without an entry.
    pub(super) all: Option<&'s Shares>,
    /// Shares of the time in which threads of this part wait for a processor.
    pub(super) blocked: Option<&'s Shares>,
}

/// Errors of a row's times, in parts of a tick: of its self time and of all time on its behalf.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RowErrors {
    pub(super) own: Errors,
    pub(super) total: Errors,
}

/// Divides a part among the rows; `errors` is by row.
pub(super) fn spread(balance: &mut Balance, of: &Part<'_>, errors: &mut [RowErrors]) {
    let Some(meter) = balance.meters.get_mut(of.row as usize).map(std::mem::take) else { return };
    let top = row(balance, of.top);
    let mut divided: u128 = 0;
    for (level, whole) in meter.normalized.iter().enumerate().filter(|(_, whole)| **whole > 0) {
        let shares = of.levels.get(level).copied().flatten().or(of.all);
        let Some(shares) = shares else {
            *at(&mut balance.meters[top].normalized, level) += whole;
            if let Some(errors) = errors.get_mut(top) {
                errors.own.add_undivided(*whole as f64);
            }
            continue;
        };
        divided += whole;
        for share in &shares.shares {
            let to = row(balance, share.key);
            *at(&mut balance.meters[to].normalized, level) += own(*whole, share, shares.samples);
            if share.within > 0 {
                let within = upto(*whole, share.within, shares.samples);
                let total = &mut balance.totals[to];
                let sum = at(&mut total.normalized, level);
                *sum = sum.wrapping_add(within);
            }
            if let Some(errors) = errors.get_mut(to) {
                errors.own.add(*whole as f64, share.own, shares.samples);
                errors.total.add(*whole as f64, share.within, shares.samples);
            }
        }
        for &((caller, callee), count) in &shares.arcs {
            let key = (row(balance, caller) as u32, callee);
            let arc = balance.arcs.entry(key).or_default();
            arc.normalized = arc.normalized.wrapping_add(upto(*whole, count, shares.samples));
        }
    }
    states(balance, of, &meter);
    within(balance, of, divided);
}

/// Divides elapsed time by state. Samples taken while the thread computed divide its ready time, too; its waiting time is
/// divided by samples taken as it went to sleep.
fn states(balance: &mut Balance, of: &Part<'_>, meter: &Meter) {
    let top = row(balance, of.top);
    for phase in [Phase::Busy, Phase::Spinning, Phase::Ready, Phase::Blocked] {
        let Some(place) = phase.place() else { continue };
        let shares = if phase == Phase::Blocked { of.blocked } else { of.all };
        let Some(shares) = shares else {
            for (runnable, whole) in meter.by_runnable[place].iter().enumerate() {
                *at(&mut balance.meters[top].by_runnable[place], runnable) += whole;
            }
            balance.meters[top].runnable[place] += meter.runnable[place];
            continue;
        };
        let time: u128 = meter.by_runnable[place].iter().sum();
        for share in &shares.shares {
            let to = row(balance, share.key);
            for (runnable, whole) in meter.by_runnable[place].iter().enumerate() {
                let part = own(*whole, share, shares.samples);
                *at(&mut balance.meters[to].by_runnable[place], runnable) += part;
            }
            balance.meters[to].runnable[place] += own(meter.runnable[place], share, shares.samples);
            let total = &mut balance.totals[to];
            total.time[place] = total.time[place].wrapping_add(upto(time, share.within, shares.samples));
            let runnable = upto(meter.runnable[place], share.within, shares.samples);
            total.runnable[place] = total.runnable[place].wrapping_add(runnable);
        }
    }
    debug_assert!(meter.runnable.len() == PHASES);
}

/// Divides the time under a lock among functions, too.
fn within(balance: &mut Balance, of: &Part<'_>, divided: u128) {
    let keys: Vec<(u32, u32)> =
        balance.within.range((of.row, 0)..=(of.row, u32::MAX)).map(|(key, _)| *key).collect();
    for key in keys {
        let Some(whole) = balance.within.remove(&key) else { continue };
        let (_, object) = key;
        let shares = of.all.filter(|_| divided > 0);
        let parts: Vec<(u32, u128)> = match shares {
            Some(shares) => {
                let part =
                    |share: &Share| (row(balance, share.key) as u32, own(whole, share, shares.samples));
                shares.shares.iter().map(part).collect()
            }
            None => vec![(row(balance, of.top) as u32, whole)],
        };
        for (function, part) in parts.into_iter().filter(|(_, part)| *part > 0) {
            *balance.within.entry((function, object)).or_default() += part;
        }
    }
}

fn row(balance: &Balance, key: u32) -> usize {
    if key == NO_KEY { balance.places.outside() as usize } else { key as usize }
}

fn upto(whole: u128, count: u32, of: u32) -> u128 {
    part(i128::try_from(whole).unwrap_or(i128::MAX), count, of).unsigned_abs()
}

fn own(whole: u128, share: &Share, of: u32) -> u128 {
    upto(whole, share.own_before + share.own, of) - upto(whole, share.own_before, of)
}
