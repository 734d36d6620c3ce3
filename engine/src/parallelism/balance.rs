//! The end of a run: the clocks' values become the times of rows, all in parts of a tick.

use super::account::{Arc, Places, Waiting};
use super::clock::{EXECUTING, PHASES, Phase, SCALE, at};
use super::tally::Sum;
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;

/// The accounts of a run that is over.
#[derive(Debug)]
pub(super) struct Balance {
    pub(super) places: Places,
    /// Length of the run, ticks.
    pub(super) now: u64,
    /// Ticks by place of the number of busy processors (`place_of` in `clock.rs`).
    pub(super) levels: Vec<u64>,
    /// For each row: its self time first, then the time on its behalf.
    pub(super) meters: Vec<Meter>,
    pub(super) totals: Vec<Total>,
    /// For each row: normalized time of threads that the row created or woke.
    pub(super) others: Vec<u128>,
    pub(super) calls: Vec<u64>,
    /// For each object: the number of waiting threads, over time.
    pub(super) queues: Vec<Waiting>,
    /// For each pair of caller and callee: the calls.
    pub(super) arcs: FxHashMap<(u32, u32), Arc>,
    /// Normalized time by part or function and by the object that was innermost at that time. The map is sorted, since
    /// there may be as many parts as threads, and each looks up its own.
    pub(super) within: BTreeMap<(u32, u32), u128>,
}

/// A row's self time. All in parts of a tick.
#[derive(Clone, Debug, Default)]
pub(super) struct Meter {
    /// Normalized time for each place of the number of busy processors.
    pub(super) normalized: Vec<u128>,
    /// For each phase: time by number of runnable threads.
    pub(super) by_runnable: [Vec<u128>; PHASES],
    /// Time multiplied by the number of runnable threads.
    pub(super) runnable: [u128; PHASES],
}

impl Meter {
    /// The meter of a sum. `crowded`: the place of the first number in [`Sum::crowded`].
    pub(super) fn of(sum: &Sum, crowded: usize) -> Meter {
        let scaled = |ticks: &Vec<u128>| ticks.iter().map(|ticks| scale(*ticks)).collect();
        let mut by_runnable = sum.by_runnable.each_ref().map(scaled);
        for phase in 0..EXECUTING {
            for (place, on) in sum.on[phase].by_runnable.iter().enumerate() {
                let whole = std::mem::replace(at(&mut by_runnable[phase], place), *on);
                *at(&mut by_runnable[READY], place) += whole.saturating_sub(*on);
            }
        }
        Meter { normalized: normalized(sum, crowded), by_runnable, runnable: runnable(sum) }
    }

    /// Time by phase.
    pub(super) fn time(&self) -> [u128; PHASES] {
        self.by_runnable.each_ref().map(|times| times.iter().sum())
    }
}

/// A row's self time together with all time on its behalf.
#[derive(Clone, Debug, Default)]
pub(super) struct Total {
    pub(super) normalized: Vec<u128>,
    pub(super) time: [u128; PHASES],
    pub(super) runnable: [u128; PHASES],
}

impl Total {
    /// Like [`Meter::of`].
    pub(super) fn of(sum: &Sum, crowded: usize) -> Total {
        let time = divided(sum.time.map(scale), sum.on.each_ref().map(|on| on.time));
        Total { normalized: normalized(sum, crowded), time, runnable: runnable(sum) }
    }
}

const READY: usize = Phase::Ready as usize;

fn scale(ticks: u128) -> u128 {
    ticks.saturating_mul(SCALE)
}

/// Each of n computing threads gets dt ÷ n; shared clocks have divided by n already.
fn normalized(sum: &Sum, crowded: usize) -> Vec<u128> {
    let mut normalized = Vec::new();
    for (place, time) in sum.crowded.iter().enumerate() {
        *at(&mut normalized, crowded + place) = *time;
    }
    for (count, ticks) in sum.computing.iter().enumerate().skip(1) {
        *at(&mut normalized, count) += scale(*ticks) / count as u128;
    }
    normalized
}

fn runnable(sum: &Sum) -> [u128; PHASES] {
    divided(sum.runnable.map(scale), sum.on.each_ref().map(|on| on.runnable))
}

/// On shared processors: counts time in which an executing thread has no processor as ready time.
fn divided(mut times: [u128; PHASES], on: [u128; EXECUTING]) -> [u128; PHASES] {
    for (phase, on) in on.into_iter().enumerate().filter(|(_, on)| *on > 0) {
        let whole = std::mem::replace(&mut times[phase], on);
        times[READY] = times[READY].saturating_add(whole.saturating_sub(on));
    }
    times
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parallelism::clock::{Clock, place_of};
    use crate::parallelism::tally::{Side, Tally};

    #[test]
    fn the_time_of_seventy_threads_at_once_is_at_their_place() {
        let mut clock = Clock::new(None);
        for _ in 0..70 {
            clock.change(Phase::Off, Phase::Busy);
        }
        let (mut tally, mut sum) = (Tally::default(), Sum::default());
        tally.begin(&clock, Phase::Busy);
        clock.advance(140);
        tally.end(&clock, Phase::Busy);
        sum.own(&tally, 0, Side::To);
        sum.whole(&tally, Side::To);
        assert_eq!(clock.levels()[place_of(70)], 140);
        let meter = Meter::of(&sum, clock.first_crowded());
        let place = meter.normalized.iter().position(|time| *time > 0);
        assert_eq!(place, Some(place_of(70)));
        let off = (4 * SCALE).abs_diff(meter.normalized.iter().sum());
        assert!(off <= 2, "twice two ticks, each rounded down: {off} parts of a tick off");
        assert!(clock.crowded.len() < 3, "no lists of places that only have clocks of their own");
    }
}
