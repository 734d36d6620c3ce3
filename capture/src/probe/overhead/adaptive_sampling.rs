//! Chooses how many samples are taken, so that recording costs no more than it may. The choice is a pure function of
//! time and costs.
//!
//! (This method is longpole's own.) A sample costs ten times as much as a record, and more on a slow machine or with a
//! deep stack. On a virtual machine the clock's interrupt alone costs as much as three stacks. So no rate is right in
//! advance. Unless a user asked for a rate, ticks may cost the part of the budget that events and probes do not use: at
//! most three quarters of it, at least three eighths, since too few samples are useless. The initial rate follows from
//! the measured cost of a tick. Samples at sleeps and wake-ups, which show the reasons for waits, have their own
//! sixteenth of the budget, which ticks do not use. As for probes, a debt grows by what samples cost and shrinks by
//! what they may cost. When it reaches one second's worth of the budget, one of two ticks is skipped, then three of
//! four, and so on. If skipping half as many would have been enough for a while, the rate is doubled again. A rate that
//! a user asked for is kept as long as it fits into the budget with events and probes. Which ticks are skipped does not
//! depend on the program's behaviour, so shares stay right and only their ± grows.

use std::time::Duration;

/// CPU time spent since the start, nanoseconds. No field ever decreases.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct SampleSpent {
    /// The clock, nanoseconds.
    pub(crate) now_ns: u64,
    /// CPU time of the recorded processes themselves.
    pub(crate) own_ns: u64,
    /// CPU time spent on events and probes.
    pub(crate) others_ns: u64,
    /// CPU time spent on taking and reading samples.
    pub(crate) samples_ns: u64,
}

/// The debt at which samples are skipped: the complete budget of one CPU for this time.
const DEBT_TIME: Duration = Duration::from_secs(1);
/// Least time between two decisions.
const WINDOW: Duration = Duration::from_millis(500);
/// Share of their limit that samples cost after they were made rarer because they had cost too much.
const ENOUGH: f64 = 0.9;
/// The rate is doubled if that would cost less than this share of the limit, so that the rate does not oscillate.
const LEVEL: f64 = 0.7;
/// Share of the budget that ticks may cost at most if no rate was asked for: 1.5 % of the program's CPU time if the
/// budget is 2 %.
const TICKS_SHARE: f64 = 0.75;
/// Share of the budget that ticks may always cost if no rate was asked for. A stack takes 15 to 20 µs, so that is 250 a
/// second on a busy CPU.
const LEAST_TICKS_SHARE: f64 = 0.375;
/// Share of the budget that samples at sleeps and wake-ups may cost, with any requested rate.
const EVENTS_SHARE: f64 = 0.0625;
/// Share of the budget that samples may always cost if a user asked for a rate.
const LEAST_SHARE: f64 = 0.25;
/// Expected cost of a stack in addition to the tick, nanoseconds: the order of magnitude measured on
/// several machines.
const STACK_NS: u64 = 6_000;
/// Share of one CPU that samples may always cost, even if the recorded processes hardly run.
const LEAST_OF_CPU: f64 = 0.001;
/// Least time between two steps to a higher rate.
const BACK_EVERY: Duration = Duration::from_secs(5);
/// The highest level: at 499 Hz it leaves some 15 ticks a second on each CPU.
const MOST: u32 = 5;

/// The state between two decisions.
#[derive(Debug)]
pub(crate) struct AdaptiveSampling {
    /// Share of the processes' own CPU time; `None`: no limit.
    share: Option<f64>,
    /// Least and largest cost of these samples, as shares of the budget. Between these limits they may use what other
    /// costs do not need.
    limits: (f64, f64),
    /// One sample of 2^`level` is taken.
    level: u32,
    last: Option<SampleSpent>,
    debt_ns: f64,
    changed_ns: u64,
}

impl AdaptiveSampling {
    /// Sampling at a rate that a user asked for. `ppm`: budget in millionths of the processes' own CPU time; `None`: no
    /// limit.
    pub(crate) fn asked(ppm: Option<u32>) -> AdaptiveSampling {
        let share = ppm.map(|ppm| f64::from(ppm) / 1e6);
        let limits = (LEAST_SHARE, f64::INFINITY);
        AdaptiveSampling { share, limits, level: 0, last: None, debt_ns: 0.0, changed_ns: 0 }
    }

    /// Sampling at a rate of at most `rate_hz`. Each tick costs a thread `tick_ns` in addition to the stack.
    pub(crate) fn fitting(ppm: Option<u32>, rate_hz: u32, tick_ns: u64) -> AdaptiveSampling {
        let all = f64::from(rate_hz) * tick_ns.saturating_add(STACK_NS) as f64 / 1e9;
        let limits = (LEAST_TICKS_SHARE, TICKS_SHARE);
        let sampling = AdaptiveSampling { limits, ..AdaptiveSampling::asked(ppm) };
        let too_much = sampling.share.map_or(0.0, |share| all / (share * TICKS_SHARE));
        let level = if too_much > 1.0 { too_much.log2().ceil().min(f64::from(MOST)) as u32 } else { 0 };
        AdaptiveSampling { level, ..sampling }
    }

    /// Sampling at sleeps and wake-ups.
    pub(crate) fn of_events(ppm: Option<u32>) -> AdaptiveSampling {
        AdaptiveSampling { limits: (EVENTS_SHARE, EVENTS_SHARE), ..AdaptiveSampling::asked(ppm) }
    }

    /// The level: one sample of 2^level is to be taken.
    pub(crate) fn level(&self) -> u32 {
        self.level
    }

    /// Decides about the level: one of 2^level samples is to be taken from now on. `None`: as before.
    pub(crate) fn look(&mut self, spent: &SampleSpent) -> Option<u32> {
        let share = self.share?;
        let Some(last) = self.last else {
            (self.last, self.changed_ns) = (Some(*spent), spent.now_ns);
            return None;
        };
        let since = |now: u64, before: u64| now.saturating_sub(before) as f64;
        let wall = since(spent.now_ns, last.now_ns);
        if wall < WINDOW.as_nanos() as f64 {
            return None;
        }
        self.last = Some(*spent);
        let budget = share * since(spent.own_ns, last.own_ns);
        let (least, most) = self.limits;
        // If the processes use less than one CPU, all costs of recording together may be a share of one CPU.
        let rest = budget.max(share * wall) - since(spent.others_ns, last.others_ns);
        let room = rest.min(budget * most).max(budget * least).max(wall * LEAST_OF_CPU);
        let cost = since(spent.samples_ns, last.samples_ns);
        self.debt_ns = (self.debt_ns + cost - room).max(0.0);
        let level = if self.debt_ns > share * DEBT_TIME.as_nanos() as f64 && cost > room {
            let steps = (cost / (ENOUGH * room)).log2().ceil().clamp(1.0, f64::from(MOST));
            (self.level + steps as u32).min(MOST)
        } else if 2.0 * cost < LEVEL * room
            && since(spent.now_ns, self.changed_ns) >= BACK_EVERY.as_nanos() as f64
        {
            self.level.saturating_sub(1)
        } else {
            self.level
        };
        if level == self.level {
            return None;
        }
        (self.level, self.changed_ns, self.debt_ns) = (level, spent.now_ns, 0.0);
        Some(level)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two threads that compute all the time and are sampled, with a fake clock.
    struct World {
        sampling: AdaptiveSampling,
        spent: SampleSpent,
        level: u32,
        changes: u32,
        /// Costs as shares of own time: of all samples, and of everything else.
        samples: f64,
        others: f64,
        own: f64,
    }

    impl World {
        fn new(ppm: Option<u32>, samples: f64, others: f64) -> World {
            World::with(AdaptiveSampling::asked(ppm), samples, others)
        }

        fn with(sampling: AdaptiveSampling, samples: f64, others: f64) -> World {
            let (spent, level) = (SampleSpent::default(), sampling.level());
            World { sampling, spent, level, changes: 0, samples, others, own: 2.0 }
        }

        /// Runs for some seconds; returns the samples' cost as a share of own time.
        fn run(&mut self, seconds: u64) -> f64 {
            let before = self.spent;
            for _ in 0..seconds * 10 {
                let own = self.own * 1e8;
                self.spent.now_ns += 100_000_000;
                self.spent.own_ns += own as u64;
                self.spent.others_ns += (own * self.others) as u64;
                self.spent.samples_ns += (own * self.samples / f64::from(1 << self.level)) as u64;
                if let Some(level) = self.sampling.look(&self.spent) {
                    assert_ne!(level, self.level);
                    self.level = level;
                    self.changes += 1;
                }
            }
            (self.spent.samples_ns - before.samples_ns) as f64 / (self.spent.own_ns - before.own_ns) as f64
        }
    }

    #[test]
    fn samples_within_the_budget_are_not_thinned() {
        let mut world = World::new(Some(20_000), 0.012, 0.007);
        world.run(100);
        assert_eq!(world.changes, 0);
    }

    #[test]
    fn samples_that_cost_too_much_are_thinned_within_seconds() {
        let mut world = World::new(Some(20_000), 0.06, 0.005);
        world.run(3);
        assert!(world.level >= 2, "{}", world.level);
        assert!(world.run(60) < 0.015);
        assert!(world.changes <= 2, "{}", world.changes);
    }

    #[test]
    fn the_default_sampling_rate_starts_where_it_fits_the_budget() {
        // On real machines a tick costs 1 to 2 µs. 499 times 28 µs are 1.4 %, three quarters of 2 % are 1.5 %.
        assert_eq!(AdaptiveSampling::fitting(Some(20_000), 499, 2_000).level(), 0);
        assert_eq!(AdaptiveSampling::fitting(Some(20_000), 499, 22_000).level(), 0);
        let dear = AdaptiveSampling::fitting(Some(20_000), 499, 50_000);
        assert_eq!(dear.level(), 1);
        let mut world = World::with(dear, 0.028, 0.003);
        world.run(100);
        assert_eq!(world.changes, 0, "and stays there");
        assert_eq!(AdaptiveSampling::fitting(None, 499, 1_000_000).level(), 0);
        assert_eq!(AdaptiveSampling::fitting(Some(1), 499, 1_000_000).level(), MOST);
    }

    #[test]
    fn the_default_sampling_rate_falls_to_its_share_of_the_budget() {
        let mut world = World::with(AdaptiveSampling::fitting(Some(20_000), 499, 1_000), 0.036, 0.0);
        assert_eq!(world.level, 0);
        world.run(20);
        assert!(world.run(60) <= 0.015, "{}", world.level);
        assert!(world.changes <= 1, "{}", world.changes);
    }

    /// Ticks and all other recording together stay within the budget of 2 %, but ticks always have a part of it.
    #[test]
    fn ticks_take_what_the_rest_of_recording_leaves_but_at_least_some() {
        for (others, most, least) in [(0.0, 0.015, 0.012), (0.012, 0.0081, 0.004), (0.3, 0.0076, 0.003)] {
            let mut world = World::with(AdaptiveSampling::fitting(Some(20_000), 499, 1_000), 0.014, others);
            world.run(60);
            let share = world.run(60);
            assert!((least..=most).contains(&share), "{share} where others cost {others}");
        }
    }

    /// The stacks of a program that sleeps all the time must not use up the ticks' part of the budget.
    #[test]
    fn off_cpu_samples_have_their_own_share_of_the_budget() {
        let mut ticks = World::with(AdaptiveSampling::fitting(Some(20_000), 499, 5_000), 0.007, 0.03);
        let mut events = World::with(AdaptiveSampling::of_events(Some(20_000)), 0.02, 0.0);
        ticks.run(30);
        events.run(30);
        assert_eq!((ticks.level, ticks.changes), (0, 0));
        assert!(events.run(60) <= 0.00126, "{}", events.level);
    }

    #[test]
    fn samples_keep_a_quarter_of_the_budget_whatever_else_costs() {
        let mut world = World::new(Some(20_000), 0.03, 0.2);
        world.run(5);
        let share = world.run(60);
        assert!((0.001..0.005).contains(&share), "{share}");
    }

    #[test]
    fn sampling_rises_again_when_samples_are_cheap() {
        let mut world = World::new(Some(20_000), 0.2, 0.0);
        world.run(10);
        assert!(world.level >= 4, "{}", world.level);
        world.samples = 0.004;
        world.run(60);
        assert_eq!(world.level, 0);
    }

    #[test]
    fn a_program_that_hardly_runs_keeps_its_samples() {
        let mut world = World::new(Some(20_000), 0.5, 0.0);
        world.own = 0.001;
        world.run(100);
        assert_eq!(world.changes, 0);
    }

    #[test]
    fn without_a_budget_all_samples_are_taken() {
        let mut world = World::new(None, 10.0, 0.0);
        world.run(10);
        assert_eq!(world.changes, 0);
    }

    #[test]
    fn sampling_that_always_costs_too_much_ends_at_the_last_step() {
        let mut world = World::new(Some(1), 1e3, 0.0);
        world.run(100);
        assert_eq!((world.level, world.changes), (MOST, 1));
    }
}
