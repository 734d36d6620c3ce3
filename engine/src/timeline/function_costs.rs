//! What a hit costs, function by function.

use crate::event::{Facts, FunctionId, HitCost, HitCosts};
use rustc_hash::FxHashSet;

/// From the facts of a recording.
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

    /// Of entering it; `None` if nothing is known.
    pub(super) fn entry(&self, function: FunctionId) -> Option<HitCost> {
        let stepped = self.entry_stepped.contains(&function);
        self.costs.map(|costs| if stepped { costs.entry_stepped } else { costs.entry })
    }

    /// Of the beginning and the end of a synchronization operation recorded by probes. Some of libc's
    /// functions begin with an instruction that is stepped over, and all are assumed to do so.
    pub(super) fn operation(&self) -> Option<(HitCost, HitCost)> {
        self.costs.map(|costs| (costs.entry_stepped, costs.exit))
    }

    /// The same together with hits before it that left no record: as many entries as exits, as of this function.
    pub(super) fn with_silent(&self, cost: HitCost, function: FunctionId, silent: u32) -> HitCost {
        let whole = |cost: HitCost| u64::from(cost.before_ns).saturating_add(u64::from(cost.after_ns));
        let pair = self.entry(function).map_or(0, whole).saturating_add(self.exit(function).map_or(0, whole));
        let silent = pair.saturating_mul(u64::from(silent)) / 2;
        HitCost {
            before_ns: cost.before_ns.saturating_add(u32::try_from(silent).unwrap_or(u32::MAX)),
            ..cost
        }
    }

    /// Of leaving it.
    pub(super) fn exit(&self, function: FunctionId) -> Option<HitCost> {
        let stepped = self.exits_stepped.contains(&function);
        self.costs.map(|costs| if stepped { costs.exit } else { costs.entry })
    }
}
