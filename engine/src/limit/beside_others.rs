//! The gain of a change on a machine whose CPUs other programs use, too (ours).
//!
//! A change that lets threads run at the same time needs more CPUs at a time, which other programs may keep busy. With the same
//! work of both, all CPUs are busy once 1 − (own + others) ÷ CPUs of the time is saved. A load generator has more work the
//! faster its server gets. Whether the others' work must be done at all is unknown, so this is the lower end of the gain.

use super::search::Search;
use crate::cpus::Cpus;
use crate::experiment::Edit;

/// Other programs that use a smaller part of the CPUs are ignored.
const IN_THE_WAY: f64 = 0.05;

impl Search {
    /// The least gain of a change that gains `gain` on free CPUs.
    pub(super) fn least_beside_others(&self, edit: &Edit, gain: f64, cpus: Cpus) -> f64 {
        let left = self.left_by_others(cpus).filter(|_| edit.needs_cpus());
        left.map_or(gain, |left| gain.min(left))
    }

    /// The part of the time that can be saved until all CPUs of the recorded machine are busy; `None`: other programs use few
    /// CPUs, or this is another machine.
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
