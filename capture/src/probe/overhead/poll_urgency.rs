//! Decides how soon the overhead controller checks costs again, judged by what probes may have cost.

/// How soon costs are to be added up again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PollUrgency {
    /// Hardly anything can be saved by removing probes.
    Idle,
    Usual,
    Urgent,
}

impl PollUrgency {
    /// The urgency if probes may have cost `hits_ns` since the last check.
    pub(super) fn of(hits_ns: u64) -> PollUrgency {
        const FEW_NS: u64 = 500_000;
        const MANY_NS: u64 = 2_000_000;
        match hits_ns {
            0..FEW_NS => PollUrgency::Idle,
            FEW_NS..=MANY_NS => PollUrgency::Usual,
            _ => PollUrgency::Urgent,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn polls_are_rare_while_probes_cost_next_to_nothing() {
        let urgency = [0, 499_999, 500_000, 2_000_000, 2_000_001].map(PollUrgency::of);
        assert_eq!(
            urgency,
            [
                PollUrgency::Idle,
                PollUrgency::Idle,
                PollUrgency::Usual,
                PollUrgency::Usual,
                PollUrgency::Urgent
            ]
        );
    }
}
