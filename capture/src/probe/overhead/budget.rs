//! The overhead budget: chooses the probes that must go so that recording costs no more than it may, and those that can
//! come back. Pure: time and costs come in, decisions go out.
//!
//! This method is longpole's own. A debt grows by what probes cost and shrinks by what they may cost. When it reaches
//! one second's worth of the budget, the most expensive probes are removed until the rest fits. So a burst of hits is
//! stopped within milliseconds and a slight excess within seconds, and neither costs more than that one debt. The debt
//! stays until it is worked off: probes that turn out to be expensive once the worst are removed go at the next check.
//! Probes may cost the budget (a share of the recorded processes' own CPU time) less the other costs: scheduler events,
//! and the threads that read them. If those alone use most of the budget, a quarter of it stays for probes, so that a
//! busy scheduler does not leave a recording without any function.
//!
//! A removed probe is tried again when its expected cost fits. That is its last known cost, halved after each pause;
//! the pause becomes four times as long each time the probe is removed again. So no probe comes and goes more than a
//! few times an hour.

use super::spending::{ProbeId, Spent};
use super::spending_window::Window;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// The debt at which probes are removed: the complete budget of one CPU for this time.
const DEBT_TIME: Duration = Duration::from_secs(1);
/// Costs are compared over the last one to two windows of this length.
const WINDOW: Duration = Duration::from_millis(500);
/// Probes are removed until all others cost this share of their limit, and restored as long as the cost stays below it.
/// Between this share and the limit nothing changes.
const LEVEL: f64 = 0.7;
/// Probes that have together cost no more than this share of the debt limit since the window began stay. A hot function is
/// found within some milliseconds, in which its program has hardly run, and one call of another function is no
/// sign that it is called often.
const SMALL: f64 = 0.05;
/// Only probes that have each cost at most this share of the debt limit count among those that `SMALL` keeps.
const FEW: f64 = 0.005;
/// The first pause before a probe is tried again, and the factor by which the pause grows each time. With 5 s, a Redis
/// whose load changed every two seconds had two to four functions a second on trial. Longer pauses make trials fewer; a
/// smaller slow-down could not be shown (BENCHMARKS.md).
const FIRST_PAUSE: Duration = Duration::from_secs(10);
const PAUSE_GROWS: u32 = 4;
/// The pause of probes that were removed along with others.
const SHORT_PAUSE: Duration = Duration::from_secs(1);
/// Largest number of probes restored at once: each restored probe locks the target's memory map for a moment.
const MOST_BACK: usize = 512;
const LONGEST_PAUSE: Duration = Duration::from_secs(3600);
/// Time between two decisions about restoring, so that probes come back together.
const TRY_EVERY: Duration = Duration::from_secs(5);

/// Probes to remove and to restore.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Decision {
    /// Probes to remove, the most expensive first.
    pub(crate) remove: Vec<ProbeId>,
    /// Probes to restore.
    pub(crate) restore: Vec<ProbeId>,
}

/// The state between two decisions.
#[derive(Debug)]
pub(crate) struct Budget {
    /// Share of the processes' own CPU time; `None`: no limit.
    share: Option<f64>,
    last: Option<Spent>,
    debt_ns: f64,
    /// The last complete window, and the one that is open.
    windows: [Window; 2],
    off: BTreeMap<ProbeId, Off>,
    tried_ns: u64,
}

/// A probe that was removed.
#[derive(Clone, Copy, Debug)]
struct Off {
    /// Time at which the probe was removed, ns; `None` while it is restored.
    since_ns: Option<u64>,
    /// Cost of the probe when it was removed, as a share of the processes' own CPU time.
    share: f64,
    pause: Duration,
}

impl Budget {
    /// A budget of `ppm` millionths of the processes' own CPU time; `None`: no limit.
    pub(crate) fn new(ppm: Option<u32>) -> Budget {
        Budget {
            share: ppm.map(|ppm| f64::from(ppm) / 1e6),
            last: None,
            debt_ns: 0.0,
            windows: [Window::default(), Window::default()],
            off: BTreeMap::new(),
            tried_ns: 0,
        }
    }

    /// Whether there is a limit; without one no probe is ever removed or restored.
    pub(crate) fn is_limited(&self) -> bool {
        self.share.is_some()
    }

    /// Decides from the costs so far; called every few hundredths of a second.
    pub(crate) fn look(&mut self, spent: &Spent) -> Decision {
        let Some(share) = self.share else { return Decision::default() };
        let now_ns = spent.now_ns;
        let Some(last) = self.last.replace(spent.clone()) else {
            self.tried_ns = now_ns;
            return Decision::default();
        };
        let step = Window::between(&last, spent);
        self.debt_ns = (self.debt_ns + step.cost_ns() - step.allowed_ns(share)).max(0.0);
        let [before, now] = &mut self.windows;
        now.add(&step);
        if now.wall_ns >= nanoseconds(WINDOW) {
            *before = std::mem::take(now);
        }
        if self.debt_ns > share * DEBT_TIME.as_nanos() as f64 {
            return Decision { remove: self.remove(share, now_ns), restore: Vec::new() };
        }
        if now_ns.saturating_sub(self.tried_ns) >= nanoseconds(TRY_EVERY) {
            self.tried_ns = now_ns;
            return Decision { remove: Vec::new(), restore: self.restore(share, now_ns) };
        }
        Decision::default()
    }

    /// Notes probes that cost little but were removed because they shared a link with an expensive one: these are
    /// restored soon.
    pub(crate) fn disabled_along(&mut self, innocent: impl Iterator<Item = ProbeId>, now_ns: u64) {
        let recent = self.recent();
        let own_ns = recent.own_ns.max(1) as f64;
        let costs: BTreeMap<ProbeId, u64> = recent.probes.into_iter().collect();
        for probe in innocent {
            let cost = costs.get(&probe).copied().unwrap_or(0) as f64;
            // A probe that was removed earlier because of its own cost keeps its longer pause.
            let pause = self.off.get(&probe).map_or(SHORT_PAUSE, |off| off.pause);
            self.off.insert(probe, Off { since_ns: Some(now_ns), share: cost / own_ns, pause });
        }
        for window in &mut self.windows {
            window.probes.retain(|(probe, _)| self.off.get(probe).is_none_or(|off| off.since_ns.is_none()));
        }
    }

    /// Stops restoring these probes, which were removed for another reason.
    pub(crate) fn forget(&mut self, gone: impl Fn(ProbeId) -> bool) {
        self.off.retain(|&probe, _| !gone(probe));
    }

    fn recent(&self) -> Window {
        let [before, now] = &self.windows;
        let mut recent = before.clone();
        recent.add(now);
        recent
    }

    fn remove(&mut self, share: f64, now_ns: u64) -> Vec<ProbeId> {
        let recent = self.recent();
        let excess = share * DEBT_TIME.as_nanos() as f64;
        let level = LEVEL * recent.allowed_ns(share);
        let mut dearest = recent.probes.clone();
        dearest.sort_unstable_by_key(|&(probe, cost)| (std::cmp::Reverse(cost), probe));
        let mut left = recent.cost_ns();
        let mut remove = Vec::new();
        for (probe, cost) in dearest {
            if left <= level || (left <= excess * SMALL && cost as f64 <= excess * FEW) {
                break;
            }
            left -= cost as f64;
            remove.push(probe);
            let paused = self.off.get(&probe).map(|off| off.pause.saturating_mul(PAUSE_GROWS));
            let pause = paused.unwrap_or(FIRST_PAUSE).min(LONGEST_PAUSE);
            // While probes take most of the time, the processes' own time hardly passes.
            let own_ns = recent.own_ns.max(1);
            self.off.insert(probe, Off { since_ns: Some(now_ns), share: cost as f64 / own_ns as f64, pause });
        }
        let gone: BTreeSet<ProbeId> = remove.iter().copied().collect();
        for window in &mut self.windows {
            window.probes.retain(|(probe, _)| !gone.contains(probe));
        }
        // The remaining debt must be worked off. If the remaining probes turn out to be expensive as well, now that the
        // program makes progress, they are removed at the next check.
        self.debt_ns = self.debt_ns.min(excess);
        remove
    }

    fn restore(&mut self, share: f64, now_ns: u64) -> Vec<ProbeId> {
        let recent = self.recent();
        let mut room = LEVEL * recent.allowed_ns(share) - recent.cost_ns();
        let mut cheapest: Vec<(f64, ProbeId)> = Vec::new();
        for (&probe, off) in &self.off {
            let Some(since_ns) = off.since_ns else { continue };
            let pauses = now_ns.saturating_sub(since_ns) as f64 / off.pause.as_nanos() as f64;
            if pauses >= 1.0 {
                let expected = off.share * recent.own_ns as f64 * 0.5f64.powf(pauses - 1.0);
                cheapest.push((expected, probe));
            }
        }
        cheapest.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        let mut back = Vec::new();
        for (expected, probe) in cheapest {
            if expected > room || back.len() >= MOST_BACK {
                break;
            }
            room -= expected;
            back.push(probe);
            if let Some(off) = self.off.get_mut(&probe) {
                off.since_ns = None;
            }
        }
        back
    }
}

fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;
    const TICK: u64 = 20 * MS;

    /// Threads that compute all the time and hit probes at fixed rates of their own time, with a simulated clock.
    struct World {
        budget: Budget,
        spent: Spent,
        /// Calls per second of own time, and the cost of a call in nanoseconds.
        rates: BTreeMap<ProbeId, (f64, f64)>,
        total: BTreeMap<ProbeId, f64>,
        on: BTreeSet<ProbeId>,
        threads: f64,
        /// Other costs, as a share of own time.
        fixed: f64,
        own_ns: f64,
        hits_ns: f64,
        changes: Vec<(u64, Decision)>,
    }

    impl World {
        fn new(ppm: u32, rates: &[(ProbeId, f64, f64)]) -> World {
            World {
                budget: Budget::new(Some(ppm)),
                spent: Spent::default(),
                rates: rates.iter().map(|&(probe, rate, cost)| (probe, (rate, cost))).collect(),
                total: BTreeMap::new(),
                on: rates.iter().map(|&(probe, ..)| probe).collect(),
                threads: 1.0,
                fixed: 0.0,
                own_ns: 0.0,
                hits_ns: 0.0,
                changes: Vec::new(),
            }
        }

        fn run(&mut self, seconds: f64) {
            let end = self.spent.now_ns + (seconds * 1e9) as u64;
            while self.spent.now_ns < end {
                let on = |probe: &&ProbeId| self.on.contains(*probe);
                let per_own: f64 = self
                    .rates
                    .keys()
                    .filter(on)
                    .map(|probe| self.rates[probe].0 * self.rates[probe].1 / 1e9)
                    .sum();
                let own = self.threads * TICK as f64 / (1.0 + per_own);
                for (&probe, &(rate, cost)) in &self.rates {
                    if self.on.contains(&probe) {
                        let spent = rate * cost * own / 1e9;
                        *self.total.entry(probe).or_default() += spent;
                        self.hits_ns += spent;
                    }
                }
                self.own_ns += own;
                self.spent.now_ns += TICK;
                self.spent.target_ns = (self.own_ns + self.hits_ns) as u64;
                self.spent.hits_ns = self.hits_ns as u64;
                self.spent.fixed_ns = (self.fixed * self.own_ns) as u64;
                self.spent.probes =
                    self.on.iter().map(|p| (*p, self.total.get(p).copied().unwrap_or(0.0) as u64)).collect();
                let decision = self.budget.look(&self.spent);
                for probe in &decision.remove {
                    assert!(self.on.remove(probe), "taken off twice");
                }
                for probe in &decision.restore {
                    assert!(self.on.insert(*probe), "given back twice");
                    self.total.insert(*probe, 0.0);
                }
                if decision != Decision::default() {
                    self.changes.push((self.spent.now_ns, decision));
                }
            }
        }

        /// The cost of hits as a share of own time.
        fn share(&self) -> f64 {
            self.hits_ns / self.own_ns
        }
    }

    /// Without a limit nothing is removed and nothing restored, not even functions that were removed along with others.
    #[test]
    fn without_a_budget_removed_probes_are_not_restored() {
        let mut budget = Budget::new(None);
        assert!(!budget.is_limited() && Budget::new(Some(20_000)).is_limited());
        budget.disabled_along([7].into_iter(), 0);
        for second in 0..100 {
            let spent = Spent { now_ns: second * 1_000 * MS, ..Spent::default() };
            assert_eq!(budget.look(&spent), Decision::default());
        }
    }

    #[test]
    fn within_the_budget_no_probes_are_removed() {
        // The two functions cost 1.9 % together.
        let mut world = World::new(20_000, &[(1, 500.0, 17_000.0), (2, 600.0, 17_000.0)]);
        world.run(600.0);
        assert_eq!(world.changes, []);
    }

    #[test]
    fn a_hot_function_loses_its_probes_at_once_and_others_keep_theirs() {
        let mut world =
            World::new(20_000, &[(1, 100_000.0, 17_000.0), (2, 100.0, 17_000.0), (3, 10.0, 17_000.0)]);
        world.run(1.0);
        let (when, first) = &world.changes[0];
        assert_eq!(first.remove, [1]);
        assert!(*when <= 60 * MS, "{when}");
        assert_eq!(world.changes.len(), 1);
    }

    #[test]
    fn functions_removed_along_with_a_hot_one_are_restored_in_parts() {
        let innocent = 2..1_002;
        let rates: Vec<(ProbeId, f64, f64)> = std::iter::once((1, 100_000.0, 17_000.0))
            .chain(innocent.clone().map(|probe| (probe, 0.1, 17_000.0)))
            .collect();
        let mut world = World::new(20_000, &rates);
        world.run(1.0);
        assert_eq!(world.changes[0].1.remove, [1]);
        world.on.retain(|probe| !innocent.contains(probe));
        world.budget.disabled_along(innocent.clone(), world.spent.now_ns);
        world.run(20.0);
        assert!(innocent.clone().all(|probe| world.on.contains(&probe)));
        let most = world.changes.iter().map(|(_, decision)| decision.restore.len()).max();
        assert_eq!(most, Some(MOST_BACK));
    }

    /// A function that is called thirty times a second keeps its probes even if one of its calls falls into the first
    /// moment.
    #[test]
    fn a_single_call_does_not_make_a_function_hot() {
        let mut budget = Budget::new(Some(20_000));
        assert_eq!(
            budget.look(&Spent { probes: vec![(1, 0), (2, 0)], ..Spent::default() }),
            Decision::default()
        );
        let (target_ns, hits_ns) = (25 * MS, 24 * MS);
        let probes = vec![(1, hits_ns - 40_000), (2, 40_000)];
        let spent = Spent { now_ns: 25 * MS, target_ns, hits_ns, probes, ..Spent::default() };
        assert_eq!(budget.look(&spent).remove, [1]);
    }

    /// When the most expensive functions are gone and the next ones show, these must not get a new debt of their own: a
    /// program with 24 hot functions that runs for 0.3 s would be slowed to half during all of it.
    #[test]
    fn functions_hidden_by_hot_ones_are_removed_without_more_cost() {
        let rates: Vec<(ProbeId, f64, f64)> =
            (0..24).map(|id| (id, 100_000_000.0 / f64::from(1 << id), 17_000.0)).collect();
        let mut world = World::new(20_000, &rates);
        world.run(1.0);
        assert!(world.hits_ns < 6.0 * TICK as f64, "{}", world.hits_ns);
        assert_eq!(world.on, (18..24).collect(), "{:?}", world.changes);
    }

    #[test]
    fn a_slight_excess_over_the_budget_is_ended_too() {
        // The two functions cost 2.55 % together.
        let mut world = World::new(20_000, &[(1, 1_000.0, 17_000.0), (2, 500.0, 17_000.0)]);
        world.run(10.0);
        assert_eq!(world.changes[0].1.remove, [1]);
        let mut longer = World::new(20_000, &[(1, 1_000.0, 17_000.0), (2, 500.0, 17_000.0)]);
        longer.run(600.0);
        assert!(longer.share() < 0.02, "{}", longer.share());
    }

    #[test]
    fn thousands_of_warm_functions_are_reduced_to_the_budget() {
        let rates: Vec<(ProbeId, f64, f64)> =
            (0..4_000).map(|id| (id, 1.0 + f64::from(id % 97), 17_000.0)).collect();
        let mut world = World::new(20_000, &rates);
        world.run(120.0);
        assert!(world.share() < 0.0201, "{}", world.share());
        // The remaining probes are on the functions that are called least.
        let dearest_left = world.on.iter().map(|id| id % 97).max().unwrap_or(0);
        assert!(world.on.len() > 200 && dearest_left < 8, "{} {dearest_left}", world.on.len());
    }

    /// A function that is hot for ever is tried again ever more rarely.
    #[test]
    fn a_function_that_is_always_hot_is_tried_less_and_less_often() {
        let mut world = World::new(20_000, &[(1, 50_000.0, 17_000.0)]);
        world.run(3_600.0);
        let back = world.changes.iter().filter(|(_, decision)| !decision.restore.is_empty()).count();
        assert!((1..=8).contains(&back), "{back} in an hour");
        assert!(world.share() < 0.001, "{}", world.share());
    }

    #[test]
    fn a_function_that_became_rare_gets_its_probes_back() {
        let mut world = World::new(20_000, &[(1, 5_000.0, 17_000.0), (2, 10.0, 17_000.0)]);
        world.run(5.0);
        assert!(!world.on.contains(&1));
        world.rates.insert(1, (20.0, 17_000.0));
        world.run(60.0);
        assert!(world.on.contains(&1));
        let changes = world.changes.len();
        world.run(600.0);
        assert_eq!(world.changes.len(), changes, "it stays");
    }

    #[test]
    fn with_expensive_events_functions_keep_a_quarter_of_the_budget() {
        // Functions cost 1.7 %, and costs that cannot be removed exceed the budget.
        let mut world = World::new(20_000, &[(1, 970.0, 17_000.0), (2, 10.0, 17_000.0), (3, 20.0, 17_000.0)]);
        world.fixed = 0.03;
        world.run(60.0);
        assert!(world.on.contains(&2) && world.on.contains(&3) && !world.on.contains(&1));
        assert!(world.share() < 0.02 * 0.3, "{}", world.share());
    }

    #[test]
    fn a_process_that_hardly_runs_keeps_its_probes() {
        // The process computes 1 ms per second and makes 30 calls in it: they cost half of its own time, but 0.05 % of
        // a CPU.
        let mut world = World::new(20_000, &[(1, 30_000.0, 17_000.0)]);
        world.threads = 0.001;
        world.run(600.0);
        assert_eq!(world.changes, []);
    }

    #[test]
    fn without_a_budget_no_probes_are_removed() {
        let mut world = World::new(20_000, &[(1, 1e6, 17_000.0)]);
        world.budget = Budget::new(None);
        world.run(10.0);
        assert_eq!(world.changes, []);
    }

    #[test]
    fn impossible_numbers_do_not_panic_the_budget() {
        let mut budget = Budget::new(Some(u32::MAX));
        let mut state = 7u64;
        let mut next = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            state
        };
        for _ in 0..10_000 {
            let probes = (0..next() % 5).map(|probe| (probe as u32, next())).collect();
            let (now_ns, target_ns, hits_ns, fixed_ns) = (next(), next(), next(), next());
            let spent = Spent { now_ns, target_ns, hits_ns, fixed_ns, probes, ..Spent::default() };
            let _ = budget.look(&spent);
        }
    }
}
