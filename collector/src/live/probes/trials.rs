//! Results of trials of functions, and what probes may still cost.

use super::hot_functions::HotFunction;
use capture::probe::Calls;
use engine::event::{FunctionFact, HitCosts, OperationsTried};
use std::collections::HashMap;

/// Least running time (seconds) of a trial with few calls from which anything can be concluded.
const LEAST_RUN_S: f64 = 0.02;
const FEW_CALLS: f64 = 8.0;
/// Largest number of inconclusive trials of a function; after that it never gets probes.
const MOST_TRIALS: u8 = 20;
/// Share of the processes' CPU time that probes on functions may cost if there is no limit.
const COST_WITHOUT_LIMIT: f64 = 0.02;
/// Cost of a call with probes (nanoseconds) if it was not measured: that of the slowest machine that was measured.
const CALL_NS: f64 = 20_000.0;

/// Functions that were tried, and the cost of functions that got probes.
#[derive(Debug, Default)]
pub(super) struct Trials {
    /// Share of the processes' CPU time that recording may cost (`limit`), and that chosen functions cost (`spent`).
    limit: f64,
    spent: f64,
    hit_costs: Option<HitCosts>,
    /// For each binary and name: number of inconclusive trials; [`MOST_TRIALS`]: decided.
    tried: HashMap<(String, String), u8>,
}

impl Trials {
    pub(super) fn new(budget_ppm: Option<u32>, hit_costs: Option<HitCosts>) -> Trials {
        let limit = budget_ppm.map_or(COST_WITHOUT_LIMIT, |ppm| f64::from(ppm) / 1e6);
        Trials { limit, hit_costs, ..Trials::default() }
    }

    pub(super) fn is_open(&self, seen: &HotFunction) -> bool {
        let key = (seen.module.clone(), seen.name.clone());
        self.tried.get(&key).is_none_or(|tried| *tried < MOST_TRIALS)
    }

    pub(super) fn decided(&mut self, seen: &HotFunction) {
        self.tried.insert((seen.module.clone(), seen.name.clone()), MOST_TRIALS);
    }

    /// Whether a function with these calls gets probes. All such functions together may take at most half of the limit,
    /// and a single one a quarter of that: calls that become more frequent must not make other functions lose their
    /// probes.
    pub(super) fn accepts(
        &mut self,
        seen: &HotFunction,
        cpu: f64,
        fact: &FunctionFact,
        calls: &[Calls],
    ) -> bool {
        let ran_s = calls.iter().map(|calls| calls.ran_ns as f64 / 1e9).sum::<f64>();
        let count = calls.iter().map(|calls| calls.count as f64).sum::<f64>();
        if ran_s < LEAST_RUN_S && count < FEW_CALLS {
            *self.tried.entry((seen.module.clone(), seen.name.clone())).or_default() += 1;
            return false;
        }
        // Counts one call more, which may have been about to come.
        let each_s = (count + 1.0) / ran_s.max(1e-9);
        let cost = each_s * seen.cpu * self.call_ns(fact) / 1e9 / cpu.max(1e-9);
        if cost > self.limit / 8.0 || self.spent + cost > self.limit / 2.0 {
            self.decided(seen);
            return false;
        }
        self.decided(seen);
        self.spent += cost;
        true
    }

    /// Whether a family of lock functions gets probes.
    pub(super) fn fits(&self, tried: &OperationsTried) -> bool {
        let cost = tried.cost_ppm as f64 / 1e6;
        tried.calls.is_some() && cost <= self.limit / 4.0 && self.spent + cost <= self.limit / 2.0
    }

    /// Adds the cost of a family that gets probes.
    pub(super) fn spend(&mut self, tried: &OperationsTried) {
        self.spent += tried.cost_ppm as f64 / 1e6;
    }

    /// Cost of a probed call of a lock function, nanoseconds. Some begin with an instruction that is stepped over.
    pub(super) fn operation_ns(&self) -> f64 {
        self.call_ns(&FunctionFact { entry_stepped: true, ..FunctionFact::default() })
    }

    fn call_ns(&self, fact: &FunctionFact) -> f64 {
        let Some(costs) = self.hit_costs else { return CALL_NS };
        let entry = if fact.entry_stepped { costs.entry_stepped } else { costs.entry };
        let ns = |cost: engine::event::HitCost| cost.total_ns() as f64;
        (ns(entry) + ns(costs.exit)).max(1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(name: &str, cpu: f64) -> HotFunction {
        HotFunction { name: name.into(), module: "program".into(), cpu, threads: vec![1] }
    }

    fn calls(count: u64, ran_ms: u64) -> Vec<Calls> {
        vec![Calls { count, ran_ns: ran_ms * 1_000_000 }]
    }

    #[test]
    fn a_function_called_rarely_is_accepted_and_one_called_often_never() {
        let mut trials = Trials::new(Some(20_000), None);
        let fact = FunctionFact::default();
        // A call costs 20 µs: 125 calls a second are 0.25 %.
        assert!(trials.accepts(&seen("long", 1.0), 1.0, &fact, &calls(1, 100)));
        assert!(!trials.is_open(&seen("long", 1.0)), "it has probes");
        let hot = seen("hot", 1.0);
        assert!(!trials.accepts(&hot, 1.0, &fact, &calls(32, 2)), "cut short, so it did not run for long");
        assert!(!trials.is_open(&hot), "never again");
        let asleep = seen("asleep", 1.0);
        for _ in 0..MOST_TRIALS {
            assert!(trials.is_open(&asleep));
            assert!(!trials.accepts(&asleep, 1.0, &fact, &[]));
        }
        assert!(!trials.is_open(&asleep));
        assert!(trials.accepts(&seen("in one of many threads", 0.1), 10.0, &fact, &calls(32, 100)));
    }

    #[test]
    fn accepted_functions_together_cost_less_than_half_of_the_limit() {
        let mut trials = Trials::new(None, None);
        let fact = FunctionFact::default();
        let accepted = (0..100)
            .filter(|number| trials.accepts(&seen(&format!("f{number}"), 1.0), 1.0, &fact, &calls(4, 100)))
            .count();
        // 50 calls a second cost 0.1 % each; half of the limit is 1 %.
        assert!((9..=10).contains(&accepted), "{accepted}");
    }
}
