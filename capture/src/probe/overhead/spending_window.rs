//! The costs within a stretch of time, and what probes may cost in that time.

use super::spending::{ProbeId, Spent};

/// Share of the budget that probes may always use, however high other costs are.
const LEAST_SHARE: f64 = 0.25;
/// Share of one CPU that probes may always cost, even if the recorded processes hardly run.
const LEAST_OF_CPU: f64 = 0.001;

/// A stretch of time.
#[derive(Clone, Debug, Default)]
pub(super) struct Window {
    pub(super) wall_ns: u64,
    /// The processes' own CPU time.
    pub(super) own_ns: u64,
    /// Cost of everything but probes.
    fixed_ns: u64,
    /// Cost of each probe that cost anything, in order of numbers.
    pub(super) probes: Vec<(ProbeId, u64)>,
}

impl Window {
    /// The costs between two checks.
    pub(super) fn between(last: &Spent, now: &Spent) -> Window {
        let mut probes = Vec::new();
        let mut before = last.probes.iter().copied().peekable();
        for &(probe, cost) in &now.probes {
            while before.next_if(|&(other, _)| other < probe).is_some() {}
            // All costs of a probe that was attached in between are new.
            let known = before.next_if(|&(other, _)| other == probe).map_or(0, |(_, known)| known);
            let more = cost.saturating_sub(known);
            if more > 0 {
                probes.push((probe, more));
            }
        }
        let target_ns = now.target_ns.saturating_sub(last.target_ns);
        let hits_ns = now.hits_ns.saturating_sub(last.hits_ns);
        Window {
            wall_ns: now.now_ns.saturating_sub(last.now_ns),
            own_ns: target_ns.saturating_sub(hits_ns),
            fixed_ns: now.non_probe_ns().saturating_sub(last.non_probe_ns()),
            probes,
        }
    }

    /// Adds the costs of another window.
    pub(super) fn add(&mut self, more: &Window) {
        self.wall_ns = self.wall_ns.saturating_add(more.wall_ns);
        self.own_ns = self.own_ns.saturating_add(more.own_ns);
        self.fixed_ns = self.fixed_ns.saturating_add(more.fixed_ns);
        self.probes = merged(&self.probes, &more.probes);
    }

    /// The cost of probes in the window, nanoseconds.
    pub(super) fn cost_ns(&self) -> f64 {
        self.probes.iter().map(|&(_, cost)| cost as f64).sum()
    }

    /// What probes may cost in the window, nanoseconds; `share` is the budget.
    pub(super) fn allowed_ns(&self, share: f64) -> f64 {
        let budget = self.own_ns as f64 * share;
        // If the processes use less than one CPU, all of recording may cost a share of one CPU; but only probes slow
        // down the processes.
        let left = self.own_ns.max(self.wall_ns) as f64 * share - self.fixed_ns as f64;
        left.min(budget).max(budget * LEAST_SHARE).max(self.wall_ns as f64 * LEAST_OF_CPU)
    }
}

/// Adds two lists that are in order of numbers.
fn merged(one: &[(ProbeId, u64)], other: &[(ProbeId, u64)]) -> Vec<(ProbeId, u64)> {
    let mut sums = Vec::with_capacity(one.len().max(other.len()));
    let (mut one, mut other) = (one.iter().copied().peekable(), other.iter().copied().peekable());
    while let Some(next) = match (one.peek(), other.peek()) {
        (Some(a), Some(b)) if b.0 < a.0 => other.next(),
        (Some(a), Some(b)) if a.0 == b.0 => {
            let more = other.next().map_or(0, |(_, cost)| cost);
            one.next().map(|(probe, cost)| (probe, cost.saturating_add(more)))
        }
        (Some(_), _) => one.next(),
        (None, _) => other.next(),
    } {
        sums.push(next);
    }
    sums
}
