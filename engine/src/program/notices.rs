//! Findings about a program made from a recording.

use super::spinning::busy_wait::WORTH_SAYING;
use super::spinning::spins::Spins;
use crate::event::FunctionId;
use crate::finding::{Finding, Names, Trust};
use crate::timeline::Timeline;

/// Largest number of functions that are named; further ones are counted.
const NAMED: usize = 5;

/// The part of the time on CPUs that probe hits took.
pub(super) struct ProbeCost {
    pub(super) probe_ns: u64,
    /// Running time of all threads, probe hits included.
    pub(super) ran_ns: u64,
}

/// All findings except the plan's.
pub(super) fn all(timeline: &Timeline, cost: &ProbeCost, shortened: bool) -> Vec<Finding> {
    let mut findings = Vec::new();
    let named = |numbers: &[FunctionId]| {
        let named = timeline.functions.iter().filter(|fact| numbers.binary_search(&fact.id).is_ok());
        let mut named = Names::first(NAMED, named.map(|fact| fact.name.clone()));
        named.more = numbers.len().saturating_sub(named.names.len());
        named
    };
    if !timeline.probes_removed.is_empty() {
        findings.push(Finding::ProbesRemoved { functions: named(&timeline.probes_removed) });
    }
    if !timeline.asked_off.is_empty() {
        findings.push(Finding::AskedOff { functions: named(&timeline.asked_off) });
    }
    if cost.probe_ns > 0 {
        findings.push(Finding::ProbeCost { cost_ns: cost.probe_ns, ran_ns: cost.ran_ns });
    }
    let counts = &timeline.counts;
    if counts.unmatched > 0 {
        let of = counts.unmatched.saturating_add(counts.wakes);
        findings.push(Finding::Unmatched { waits: counts.unmatched, of });
    }
    if shortened {
        findings.push(Finding::TooLong { recorded: true });
    }
    findings
}

/// How far the recording can be trusted.
pub(super) fn trust(timeline: &Timeline) -> Trust {
    let counts = &timeline.counts;
    Trust {
        events: counts.events,
        wakes: counts.wakes,
        lost: (!counts.maybe_more_lost).then_some(counts.lost),
        unmatched: counts.unmatched,
        unknown_ns: counts.unknown.0,
        truncated_waits: counts.truncated_waits,
        spurious: counts.spurious,
    }
}

/// The finding about running time that counts as waiting.
pub(super) fn replayed(timeline: &Timeline, spins: &Spins) -> Option<Finding> {
    let ran_ns = timeline.threads.iter().map(|thread| thread.ran().0).fold(0, u64::saturating_add);
    let share = spins.spun_ns as f64 / ran_ns.max(1) as f64;
    (share >= WORTH_SAYING).then_some(Finding::Spinning {
        spun_ns: spins.spun_ns,
        ran_ns,
        waits: spins.edges,
        guessed: spins.guessed,
        hand_overs: spins.hand_overs,
    })
}
