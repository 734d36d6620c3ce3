//! Whether a processor that becomes idle asks the other processors for a waiting thread. Since 2025 Linux throws dice
//! ("sched/fair: Proportional newidle balance"; `sched_balance_newidle` and `update_newidle_stats` in
//! kernel/sched/fair.c). Of 1,024 times it asks as often as asking has helped lately; at first, half of the times. A
//! processor that does not ask, or finds nothing, stays idle until a thread is woken on it or the clock of a processor
//! with a queue ticks (`nohz_balancer_kick`). With a tick of 4 ms that takes 2 ms on average. Programs with more
//! threads than processors lose a few percent by that.

use super::Numbers;

/// Sides of the dice.
const SIDES: u32 = 1024;
/// After this many attempts the ratio is computed again, and half of the attempts are forgotten.
const RENEWED: u32 = 1024;

/// How often asking other processors for threads helped one processor.
#[derive(Clone, Copy, Debug)]
pub(super) struct NewidleChance {
    times: u32,
    helped: u32,
    /// Out of [`SIDES`] times, how often the processor asks.
    ratio: u32,
    /// How many random numbers have been drawn.
    thrown: u32,
}

impl NewidleChance {
    pub(super) fn new() -> NewidleChance {
        NewidleChance { times: RENEWED / 2, helped: RENEWED / 4, ratio: SIDES / 2, thrown: 0 }
    }

    /// Throws the dice. If the processor asks, returns the weight of a success, so that `helped` estimates all times.
    pub(super) fn asks(&mut self, numbers: Option<&mut Numbers>) -> Option<u32> {
        self.thrown = self.thrown.wrapping_add(1);
        // Without a seed, steps of the golden section give each side in turn.
        let side = match numbers {
            Some(numbers) => u32::try_from(numbers.below(u64::from(SIDES))).unwrap_or(0),
            None => self.thrown.wrapping_mul(633) % SIDES,
        };
        let weight = 1 + self.ratio;
        if side > weight {
            self.learn(0);
            return None;
        }
        Some((SIDES + weight / 2) / weight)
    }

    /// Counts one attempt as `helped` successes.
    pub(super) fn learn(&mut self, helped: u32) {
        self.times = self.times.saturating_add(1);
        self.helped = self.helped.saturating_add(helped);
        if self.times >= RENEWED {
            self.ratio = self.helped.min(SIDES);
            self.times /= 2;
            self.helped /= 2;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{NewidleChance, Numbers};

    /// The share of `times` chances in which the processor asks, if asking always or never helps.
    fn share(times: u32, helps: bool, mut numbers: Option<Numbers>) -> f64 {
        let mut balance = NewidleChance::new();
        let asked = (0..times).filter(|_| {
            let weight = balance.asks(numbers.as_mut());
            if let Some(weight) = weight {
                balance.learn(if helps { weight } else { 0 });
            }
            weight.is_some()
        });
        asked.count() as f64 / f64::from(times)
    }

    #[test]
    fn new_idle_balancing_is_tried_half_the_times_then_as_often_as_it_helps() {
        for numbers in [None, Some(7)] {
            let numbers = || numbers.map(Numbers::new);
            let first = share(400, true, numbers());
            assert!((0.4..0.6).contains(&first), "{first}");
            // Less than always: the weight of a success is rounded, to one from a ratio of two thirds on.
            let helped = share(100_000, true, numbers());
            assert!((0.7..0.8).contains(&helped), "{helped}");
            assert!(share(100_000, false, numbers()) < 0.05);
        }
    }
}
