//! The path of a run ([`super::cause_tree`]), summed by function and kind of wait.

use super::result::DelayKind;
use crate::time::Ticks;
use std::collections::BTreeMap;

/// A part of a run of compute operations that is on the path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Visit {
    /// Number of the run ([`crate::schedule::Runs`]).
    pub run: u32,
    /// Offset in the run at which the visit starts, ticks.
    pub from: u64,
    /// Offset in the run at which the visit ends, ticks.
    pub to: u64,
}

/// A stretch of the path of a run; the stretches follow each other from the start to the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathStretch {
    /// Length of the stretch.
    pub length: Ticks,
    /// What the stretch contains: computing or a delay.
    pub what: OnPath,
}

/// See [`PathStretch`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnPath {
    /// A part of a run of compute operations.
    Computes {
        /// Number of the run ([`crate::schedule::Runs`]).
        run: u32,
        /// Offset in the run at which the stretch starts, ticks.
        from: u64,
    },
    /// A thread computes the cost of waking others.
    Waking,
    /// Time passes without computing the program's functions.
    Delay(DelayKind),
}

/// All delays of one kind in one run, summed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Passed {
    /// Number of stretches.
    pub count: u64,
    /// Their length.
    pub length: Ticks,
    /// The part of that length on the path.
    pub on_path: Ticks,
}

/// The path of a run: lengths of `visits` and all `on_path` add up to the time of the run, to the tick.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunPath {
    /// The parts of runs that the path computes, from the end to the start. If a thread repeats operations, they occur
    /// more than once.
    pub visits: Vec<Visit>,
    /// Delays by kind.
    pub passed: BTreeMap<DelayKind, Passed>,
    /// Computing the cost of waking others.
    pub waking: Passed,
}

impl RunPath {
    /// Length of the path, ticks.
    pub fn length(&self) -> u64 {
        let computed = self.visits.iter().map(|visit| visit.to.saturating_sub(visit.from));
        let passed = self.passed.values().chain([&self.waking]).map(|passed| passed.on_path.0);
        computed.chain(passed).fold(0, u64::saturating_add)
    }

    pub(super) fn note(&mut self, of: Option<Option<DelayKind>>, length: u64, on_path: bool) {
        let passed = match of {
            None => return,
            Some(None) => &mut self.waking,
            Some(Some(delay)) => self.passed.entry(delay).or_default(),
        };
        if on_path {
            passed.on_path.0 = passed.on_path.0.saturating_add(length);
        } else {
            passed.count += 1;
            passed.length.0 = passed.length.0.saturating_add(length);
        }
    }
}
