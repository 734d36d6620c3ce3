//! A processor's recent load as Linux counts it (kernel/sched/pelt.c): a mean of the weights of the threads that want
//! the processor, which decays by half every 32 ms. A sleeping thread still counts for some time on the processor where
//! it ran last. Where no processor is idle, new and woken threads are placed by this load, not by the length of queues.
//! So queues differ for a while, and processors that become idle have to pull threads more often.

use crate::time::Ticks;

/// Decay is tabulated in steps of a millisecond; 32 of them halve the load.
const STEP: u64 = 1_000_000 * Ticks::PER_NS;
const STEPS: u64 = 32;
/// The number 1 in fixed point.
const UNIT: u64 = 1 << 20;

/// 2 to the power of −i/32, in parts of [`UNIT`].
const LEFT: [u64; STEPS as usize + 1] = [
    1048576, 1026108, 1004120, 982604, 961548, 940944, 920781, 901051, 881743, 862849, 844359, 826266,
    808561, 791235, 774280, 757689, 741453, 725565, 710017, 694803, 679914, 665345, 651088, 637136, 623483,
    610123, 597049, 584256, 571736, 559485, 547496, 535764, 524288,
];

/// A mean over past time that decays by half every 32 ms.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Load {
    value: u64,
    /// Time at which `value` was computed.
    at: u64,
    /// The limit that `value` approaches.
    towards: u64,
}

/// The part of `value` that remains after `length`.
fn left(value: u64, length: u64) -> u64 {
    let (steps, rest) = (length / STEP, length % STEP);
    let Some(halved) = value.checked_shr(u32::try_from(steps / STEPS).unwrap_or(u32::MAX)) else { return 0 };
    let first = LEFT[(steps % STEPS) as usize];
    let next = LEFT[(steps % STEPS) as usize + 1];
    // Linear between two steps.
    let factor = first - (first - next) * rest / STEP;
    u64::try_from(u128::from(halved) * u128::from(factor) / u128::from(UNIT)).unwrap_or(u64::MAX)
}

impl Load {
    /// The load of a thread of this weight that has always wanted a processor.
    pub(super) fn of(weight: u32) -> u64 {
        u64::from(weight) * (UNIT / 1024)
    }

    /// The mean now.
    pub(super) fn now(&mut self, now: u64) -> u64 {
        let passed = now.saturating_sub(self.at);
        if passed > 0 {
            self.value = if self.value >= self.towards {
                self.towards + left(self.value - self.towards, passed)
            } else {
                self.towards - left(self.towards - self.value, passed)
            };
            self.at = now;
        }
        self.value
    }

    /// Counts one more thread of this weight that wants the processor from now on.
    pub(super) fn more(&mut self, now: u64, weight: u32) {
        self.now(now);
        self.towards = self.towards.saturating_add(Load::of(weight));
    }

    /// Counts one thread of this weight that no longer wants the processor.
    pub(super) fn fewer(&mut self, now: u64, weight: u32) {
        self.now(now);
        self.towards = self.towards.saturating_sub(Load::of(weight));
    }

    /// Adds the load of a thread that moves here.
    pub(super) fn add(&mut self, now: u64, load: u64) {
        self.value = self.now(now).saturating_add(load);
    }

    /// Takes out the load of a thread that moved away or ended.
    pub(super) fn take(&mut self, now: u64, load: u64) {
        self.value = self.now(now).saturating_sub(load);
    }
}

#[cfg(test)]
mod tests {
    use super::{LEFT, Load, STEP, UNIT, left};

    #[test]
    fn the_load_table_has_powers_of_one_half() {
        for (step, left) in LEFT.iter().enumerate() {
            let exact = (-(step as f64) / 32.0).exp2() * UNIT as f64;
            assert!((*left as f64 - exact).abs() < 15.0, "{step}: {left} {exact}");
        }
        assert_eq!(left(UNIT, 32 * STEP), UNIT / 2);
        assert_eq!(left(UNIT, 320 * STEP), UNIT >> 10);
        assert_eq!((left(UNIT, u64::MAX), left(u64::MAX, 0)), (0, u64::MAX));
    }

    #[test]
    fn a_processor_s_load_moves_half_way_every_32_ms_up_and_down() {
        let mut load = Load::default();
        load.more(0, 1024);
        assert_eq!(load.now(32 * STEP), UNIT / 2);
        assert_eq!(load.now(64 * STEP), UNIT * 3 / 4);
        load.fewer(64 * STEP, 1024);
        assert_eq!(load.now(96 * STEP), UNIT * 3 / 8);
        // A thread that has always wanted a processor comes to this one and leaves it.
        load.add(96 * STEP, UNIT);
        load.more(96 * STEP, 1024);
        load.take(128 * STEP, UNIT);
        assert_eq!(load.now(128 * STEP), UNIT * 3 / 16);
    }
}
