//! When a run is over: ticks by what the clocks told apart become normalized time by busy processors, and time by runnable
//! threads, in parts of a tick.

use super::account::{Arc, Places, Waiting};
use super::clock::{Clock, MOST_RUNNABLE, PHASES, Phase, SCALE, at};
use super::tally::Sum;
use rustc_hash::FxHashMap;

/// The accounts of a run that is over.
#[derive(Debug)]
pub(super) struct Balance {
    pub(super) places: Places,
    /// How long it took, ticks.
    pub(super) now: u64,
    /// Ticks by the number of busy processors.
    pub(super) levels: Vec<u64>,
    /// By row.
    pub(super) meters: Vec<Meter>,
    pub(super) totals: Vec<Total>,
    /// By row: normalized time on its behalf of threads that it created or woke.
    pub(super) others: Vec<u128>,
    pub(super) calls: Vec<u64>,
    /// By object.
    pub(super) queues: Vec<Waiting>,
    /// By caller and callee.
    pub(super) arcs: FxHashMap<(u32, u32), Arc>,
    /// Normalized time of a part or function while an object was the innermost one.
    pub(super) within: FxHashMap<(u32, u32), u128>,
}

/// What a row has had itself. All in parts of a tick.
#[derive(Clone, Debug, Default)]
pub(super) struct Meter {
    /// By busy processors.
    pub(super) normalized: Vec<u128>,
    /// By phase and runnable threads.
    pub(super) by_runnable: [Vec<u128>; PHASES],
    /// Time multiplied by the number of runnable threads.
    pub(super) runnable: [u128; PHASES],
}

impl Meter {
    pub(super) fn of(sum: &Sum, clock: &Clock) -> Meter {
        let (by_runnable, runnable) = if clock.shares() {
            shared(sum, clock)
        } else {
            let scaled = |ticks: &Vec<u128>| ticks.iter().map(|ticks| ticks * SCALE).collect();
            (sum.phases.each_ref().map(scaled), sum.runnable.map(scale))
        };
        Meter { normalized: normalized(sum, clock), by_runnable, runnable }
    }

    /// Time by phase.
    pub(super) fn time(&self) -> [u128; PHASES] {
        self.by_runnable.each_ref().map(|times| times.iter().sum())
    }
}

/// What a row has had with all that was done on its behalf.
#[derive(Clone, Debug, Default)]
pub(super) struct Total {
    pub(super) normalized: Vec<u128>,
    pub(super) time: [u128; PHASES],
    pub(super) runnable: [u128; PHASES],
}

impl Total {
    pub(super) fn of(sum: &Sum, clock: &Clock) -> Total {
        let normalized = normalized(sum, clock);
        if clock.shares() {
            let (by_runnable, runnable) = shared(sum, clock);
            return Total { normalized, time: by_runnable.map(|times| times.iter().sum()), runnable };
        }
        Total { normalized, time: sum.time.map(scale), runnable: sum.runnable.map(scale) }
    }
}

fn scale(ticks: u128) -> u128 {
    ticks.saturating_mul(SCALE)
}

/// Each of n computing threads gets dt ÷ n.
fn normalized(sum: &Sum, clock: &Clock) -> Vec<u128> {
    let mut normalized = Vec::new();
    for (place, ticks) in sum.computing.iter().enumerate() {
        let crowd = clock.computing.crowd(place);
        if crowd.count > 0 {
            *at(&mut normalized, clock.level_of(crowd)) += scale(*ticks) / u128::from(crowd.count);
        }
    }
    normalized
}

/// Who executes on shared processors has one for a part of the time, and is ready for the rest.
fn shared(sum: &Sum, clock: &Clock) -> ([Vec<u128>; PHASES], [u128; PHASES]) {
    let (mut by_runnable, mut runnable) = ([const { Vec::new() }; PHASES], [0u128; PHASES]);
    let mut add = |phase: usize, among: u32, time: u128| {
        *at(&mut by_runnable[phase], (among as usize).min(MOST_RUNNABLE)) += time;
        runnable[phase] = runnable[phase].saturating_add(time.saturating_mul(among.into()));
    };
    let ready = Phase::Ready.place().unwrap_or_default();
    for (phase, ticks) in sum.phases.iter().enumerate() {
        let executes = [Phase::Busy, Phase::Spinning].iter().any(|executes| executes.place() == Some(phase));
        for (place, ticks) in ticks.iter().enumerate().filter(|(_, ticks)| **ticks > 0) {
            let crowd = clock.runnable.crowd(place);
            let (above, below) = if executes { clock.part(crowd) } else { (1, 1) };
            let time = scale(*ticks);
            let part = (time / below).saturating_mul(above) + time % below * above / below;
            add(phase, crowd.count, part);
            add(ready, crowd.count, time.saturating_sub(part));
        }
    }
    (by_runnable, runnable)
}
