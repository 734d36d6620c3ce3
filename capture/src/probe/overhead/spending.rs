//! The cost of recording, as input for the budget.

use super::adaptive_sampling::SampleSpent;

/// A probe that can be removed: a function number, or another number that has counters.
pub(crate) type ProbeId = u32;

/// CPU time spent since the start, nanoseconds. No field ever decreases.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Spent {
    /// The clock, nanoseconds.
    pub(crate) now_ns: u64,
    /// CPU time of the recorded processes, probe hits included.
    pub(crate) target_ns: u64,
    /// The part of that time that probe hits took, including hits of probes that have been removed, ns.
    pub(crate) hits_ns: u64,
    /// Cost of probes: hits, and reading their records.
    pub(crate) probes_ns: u64,
    /// Cost of everything that removing probes does not change, except samples.
    pub(crate) fixed_ns: u64,
    /// Cost of samples: taking and reading them.
    pub(crate) samples_ns: u64,
    /// The part of that cost for samples at sleeps and wake-ups, ns.
    pub(crate) event_samples_ns: u64,
    /// Cost of each attached probe since it was last attached, ns, in order of numbers.
    pub(crate) probes: Vec<(ProbeId, u64)>,
}

impl Spent {
    /// Cost of everything but probes.
    pub(crate) fn non_probe_ns(&self) -> u64 {
        self.fixed_ns.saturating_add(self.samples_ns)
    }

    /// The costs as input for the sampling at ticks.
    pub(crate) fn on_ticks(&self) -> SampleSpent {
        self.on_samples(self.samples_ns.saturating_sub(self.event_samples_ns))
    }

    /// The costs as input for the sampling at sleeps and wake-ups.
    pub(crate) fn on_events(&self) -> SampleSpent {
        self.on_samples(self.event_samples_ns)
    }

    fn on_samples(&self, samples_ns: u64) -> SampleSpent {
        SampleSpent {
            now_ns: self.now_ns,
            own_ns: self.target_ns.saturating_sub(self.hits_ns),
            others_ns: self.fixed_ns.saturating_add(self.probes_ns),
            samples_ns,
        }
    }
}
