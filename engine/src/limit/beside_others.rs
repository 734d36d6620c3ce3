//! What a change gains on a machine whose CPUs other programs use, too (ours).
//!
//! A change that lets threads run at the same time needs more CPUs at a time. Those that others keep busy may not be free for it:
//! with the same work of both, all CPUs are busy when 1 − (own + others) ÷ CPUs of the time is gone. A load generator has more to do
//! the faster its server gets. Whether the others' work must be done at all is not known, so that this is the lower end of the gain.

use super::search::Search;
use crate::cpus::Cpus;
use crate::experiment::Edit;

/// Others that use a smaller part of the CPUs are in nobody's way.
const IN_THE_WAY: f64 = 0.05;

impl Search {
    /// The least that a change gains which gains this much on free CPUs.
    pub(super) fn least_beside_others(&self, edit: &Edit, gain: f64, cpus: Cpus) -> f64 {
        let left = self.left_by_others(cpus).filter(|_| edit.needs_cpus());
        left.map_or(gain, |left| gain.min(left))
    }

    /// The part of the time that goes at most until all CPUs of the recorded machine are busy; `None`: others use few, or it is another
    /// machine.
    fn left_by_others(&self, cpus: Cpus) -> Option<f64> {
        let Cpus::Count(count) = cpus else { return None };
        if self.program().recorded_cpus != Some(count.get()) {
            return None;
        }
        let others: f64 = self.recorded.others.iter().map(|other| other.cpus).sum();
        let cost = self.program().overhead.as_ref().filter(|cost| cost.target_ns > 0)?;
        let busy = cost.target_ns as f64 / cost.wall_ns.max(1) as f64;
        let machine = f64::from(count.get());
        (others >= IN_THE_WAY * machine).then(|| (1.0 - (busy + others) / machine).max(0.0))
    }
}
