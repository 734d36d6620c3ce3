//! The cost of a probe hit for each function: the nanoseconds before and after its record.

use crate::event::{Facts, FunctionId, HitCost, HitCosts};
use rustc_hash::FxHashSet;

/// Reads the costs from the facts of a recording.
#[derive(Clone, Debug, Default)]
pub(super) struct FunctionCosts {
    costs: Option<HitCosts>,
    entry_stepped: FxHashSet<FunctionId>,
    exits_stepped: FxHashSet<FunctionId>,
}

impl FunctionCosts {
    pub(super) fn new(facts: &Facts) -> FunctionCosts {
        let mut costs = FunctionCosts { costs: facts.hit_costs, ..FunctionCosts::default() };
        if facts.hit_costs.is_some() {
            let entry = facts.functions.iter().filter(|function| function.entry_stepped);
            costs.entry_stepped = entry.map(|function| function.id).collect();
            let exits = facts.functions.iter().filter(|function| function.exits_stepped);
            costs.exits_stepped = exits.map(|function| function.id).collect();
        }
        costs
    }

    /// Cost of an entry hit; `None` if hits were not measured.
    pub(super) fn entry(&self, function: FunctionId) -> Option<HitCost> {
        let stepped = self.entry_stepped.contains(&function);
        self.costs.map(|costs| if stepped { costs.entry_stepped } else { costs.entry })
    }

    /// Costs of the hits at begin and end of a probed synchronization operation. Some of libc's functions begin with an
    /// instruction that must be single-stepped; all are assumed to.
    pub(super) fn operation(&self) -> Option<(HitCost, HitCost)> {
        self.costs.map(|costs| (costs.entry_stepped, costs.exit))
    }

    /// `cost` plus that of earlier hits without a record: half entries, half exits, at this function's prices.
    pub(super) fn with_silent(&self, cost: HitCost, function: FunctionId, silent: u32) -> HitCost {
        let whole = |cost: HitCost| u64::from(cost.before_ns).saturating_add(u64::from(cost.after_ns));
        let pair = self.entry(function).map_or(0, whole).saturating_add(self.exit(function).map_or(0, whole));
        let silent = pair.saturating_mul(u64::from(silent)) / 2;
        HitCost {
            before_ns: cost.before_ns.saturating_add(u32::try_from(silent).unwrap_or(u32::MAX)),
            ..cost
        }
    }

    /// Cost of an exit hit; `None` if hits were not measured.
    pub(super) fn exit(&self, function: FunctionId) -> Option<HitCost> {
        let stepped = self.exits_stepped.contains(&function);
        self.costs.map(|costs| if stepped { costs.exit } else { costs.entry })
    }
}
