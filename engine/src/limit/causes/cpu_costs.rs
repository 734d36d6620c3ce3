//! Work that costs more CPU time on more CPUs, as runs of the command on several CPU counts show, as a row of the ledger.

use crate::experiment::Edit;
use crate::limit::LimitKind;
use crate::limit::search::Search;
use crate::limit::watched_run::WatchedRun;
use crate::predict::{CpuCosts, Spread};
use crate::program::FunctionRef;

impl Search {
    /// The edit for this run's CPUs: all functions cost as on the smallest CPU count. `None`: no growth, or not more CPUs.
    pub(in crate::limit) fn at_least_cost(&self, run: &WatchedRun) -> Option<Edit> {
        let costs = self.costs.as_ref().filter(|costs| costs.grows())?;
        let (few, _) = costs.ends()?;
        (run.cpus.or(usize::MAX) > few.cpus as usize).then_some(Edit::CostAsOn(few.cpus))
    }

    /// The ends of the gain, since pairs of runs differ; `gain`: with the middle growth.
    pub(in crate::limit) fn bounds_of_cost(&self, gain: f64) -> (f64, f64) {
        let Some((_, many)) = self.costs.as_ref().and_then(CpuCosts::ends) else { return (0.0, gain) };
        let Spread { middle, least, most } = many.growth;
        let part = |growth: f64| (1.0 - 1.0 / growth) / (1.0 - 1.0 / middle);
        ((gain * part(least)).clamp(0.0, gain), (gain * part(most)).clamp(gain, 1.0))
    }

    /// The function whose CPU time grows most.
    pub(in crate::limit) fn grown_most(&self) -> Option<FunctionRef> {
        let grown = self.costs.as_ref()?.grown().into_iter().next()?;
        let place = self.program().functions.iter().position(|function| function.name == grown.function)?;
        u32::try_from(place).ok().map(FunctionRef)
    }

    /// The kind of limit, in the program's words.
    pub(in crate::limit) fn of_costs(&self) -> LimitKind {
        let Some((few, many)) = self.costs.as_ref().and_then(CpuCosts::ends) else {
            return LimitKind::Nothing;
        };
        let grown = self.costs.as_ref().and_then(|costs| costs.grown().into_iter().next());
        LimitKind::CostsMore {
            few: few.cpus,
            many: many.cpus,
            growth: many.growth.middle,
            function: grown.as_ref().map(|grown| grown.function.clone()),
            few_ns: grown.as_ref().map_or(few.cpu_ns.middle, |grown| grown.few_ns),
            many_ns: grown.as_ref().map_or(many.cpu_ns.middle, |grown| grown.many_ns),
        }
    }
}
