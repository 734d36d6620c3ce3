//! What a change gains on a machine whose CPUs are also used by other programs. (This method is longpole's own.)
//!
//! A change that lets threads run at the same time needs more CPUs at a time. CPUs that other programs keep busy may
//! not be free for it, and a load generator has more to do the faster its server gets. Whether the other programs' work
//! must be done at all is not known. So the gain of such a change lies between nothing and the simulated gain.

use crate::cpus::Cpus;
use crate::experiment::Edit;
use crate::limit::search::Search;

/// Other programs that use a smaller part of the CPUs do not slow the program.
const IN_THE_WAY: f64 = 0.05;
/// If the program and others together use a smaller part of the CPUs on average, enough are free.
const CROWDED: f64 = 0.5;

impl Search {
    /// The least that a change gains which gains this much on free CPUs.
    pub(super) fn least_beside_others(&self, edit: &Edit, gain: f64, cpus: Cpus) -> f64 {
        if edit.needs_cpus() && self.is_crowded(cpus) { gain.min(0.0) } else { gain }
    }

    /// Whether other programs use CPUs of the recorded machine, and few of its CPUs are free.
    fn is_crowded(&self, cpus: Cpus) -> bool {
        let Cpus::Count(count) = cpus else { return false };
        let cost = self.program().overhead.as_ref().filter(|cost| cost.target_ns > 0);
        let Some(cost) = cost.filter(|_| self.program().recorded_cpus == Some(count.get())) else {
            return false;
        };
        let busy = cost.target_ns as f64 / cost.wall_ns.max(1) as f64;
        let (machine, others) = (f64::from(count.get()), self.cpus_of_others());
        others >= IN_THE_WAY * machine && busy + others >= CROWDED * machine
    }

    /// CPUs that other programs kept busy, on average.
    pub(in crate::limit) fn cpus_of_others(&self) -> f64 {
        self.recorded.others.iter().map(|other| other.cpus).sum()
    }
}
