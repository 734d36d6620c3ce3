//! What recording has cost, as the budget sees it.

use super::adaptive_sampling::SampleSpent;

/// What can be removed: a function number, or another number that the caller counts by.
pub(crate) type ProbeId = u32;

/// What has been spent since the start, nanoseconds of CPU time. Nothing in it ever falls.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Spent {
    /// Clock.
    pub(crate) now_ns: u64,
    /// The recorded processes', with what probe hits added to it.
    pub(crate) target_ns: u64,
    /// Of that, probe hits: of all probes, those that went included.
    pub(crate) hits_ns: u64,
    /// On probes: hits, and reading their records.
    pub(crate) probes_ns: u64,
    /// On anything that removing probes does not change, except samples.
    pub(crate) fixed_ns: u64,
    /// On samples: taking and reading them.
    pub(crate) samples_ns: u64,
    /// Of that, on those at sleeps and wake-ups.
    pub(crate) event_samples_ns: u64,
    /// On each probe that is on, since it came (again), in order of their numbers.
    pub(crate) probes: Vec<(ProbeId, u64)>,
}

impl Spent {
    /// On all but probes.
    pub(crate) fn non_probe_ns(&self) -> u64 {
        self.fixed_ns.saturating_add(self.samples_ns)
    }

    /// As samples at ticks see it.
    pub(crate) fn on_ticks(&self) -> SampleSpent {
        self.on_samples(self.samples_ns.saturating_sub(self.event_samples_ns))
    }

    /// As samples at sleeps and wake-ups see it.
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
