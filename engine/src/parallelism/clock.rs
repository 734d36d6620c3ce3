//! Clocks that all threads share, so that advancing the time costs the same for any number of threads. A thread's time
//! is the difference of a clock's values at the end and at the beginning of an activity ([`super::tally`]).
//!
//! Normalized processor time (1989, Equation 1) is the integral of dt ÷ (number of busy processors) over the time that
//! a thread computes. While n threads compute, each gets dt ÷ n. One clock for each n counts whole ticks, which are
//! divided by n at the end of the run ([`super::balance`]): nothing is rounded before, and all clocks are machine
//! words. Large n share clocks ([`place_of`]), so that a change costs the same with a hundred threads and with a
//! hundred thousand. These clocks count dt ÷ n in parts of a tick, rounded down: after 10⁹ changes the error is a
//! thousandth of a tick.
//!
//! Ideally shared processors (2001, section 2.3) may have more executing threads than processors. Each of n threads on
//! P processors then runs for P ÷ n of the time, and is ready for the other part. The *busy processors* are those of
//! the P that compute, P · (computing ÷ executing), rounded up. A thread's processor time divided by them is again dt ÷
//! (number of computing threads). A spinning thread keeps its processor but is not busy (section 3.1: "spin time is
//! factored out"): it counts among the executing threads, not among the computing ones.

/// Parts of a tick in divided times.
pub(super) const SCALE: u128 = 1 << 40;

/// Largest number of runnable threads in distributions; it also stands for all larger numbers. Averages count exactly.
pub(super) const MOST_RUNNABLE: usize = 32;

/// A thread's activity (section 3.1, Table 1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Phase {
    /// Computes on a processor.
    Busy,
    /// Keeps a processor and only waits.
    Spinning,
    /// Wants a processor.
    Ready,
    /// Waits without a processor.
    Blocked,
    /// Has not begun, has ended, or is unknown.
    #[default]
    Off,
}

/// Number of [`Phase`]s other than `Off`.
pub(super) const PHASES: usize = 4;

impl Phase {
    /// The phase's number; `None` for `Off`.
    #[inline]
    pub(super) fn place(self) -> Option<usize> {
        (self != Phase::Off).then_some(self as usize)
    }
}

/// Phases with numbers below this execute.
pub(super) const EXECUTING: usize = 2;

/// Each number of busy processors below this has its own clock.
const EXACT: u32 = 64;
/// Clocks for each doubling above that: the numbers that share one differ by a sixteenth at most.
const PARTS: u32 = 16;

/// The place of the clock for a number of busy processors.
pub(super) fn place_of(busy: u32) -> usize {
    if busy < EXACT {
        return busy as usize;
    }
    let doublings = busy.ilog2() - EXACT.ilog2();
    let part = (busy >> (busy.ilog2() - PARTS.ilog2())) - PARTS;
    (EXACT + doublings * PARTS + part) as usize
}

/// The number of busy processors that a place stands for: the middle of its numbers.
pub(super) fn busy_at(place: usize) -> u32 {
    let place = u32::try_from(place).unwrap_or(u32::MAX);
    if place < EXACT {
        return place;
    }
    let (doublings, part) = ((place - EXACT) / PARTS, (place - EXACT) % PARTS);
    let width = (EXACT / PARTS).checked_shl(doublings).unwrap_or(u32::MAX);
    (PARTS + part).saturating_mul(width).saturating_add(width / 2)
}

/// Time on a processor of a thread that executes all along, where processors are shared; in parts of a tick, rounded down.
#[derive(Clone, Debug, Default)]
pub(super) struct On {
    /// Time for each number of runnable threads.
    pub(super) by_runnable: Vec<u128>,
    pub(super) time: u128,
    /// Time multiplied by the number of runnable threads.
    pub(super) runnable: u128,
}

/// The clocks; see the module.
#[derive(Clone, Debug, Default)]
pub(super) struct Clock {
    /// Ticks from the start.
    pub(super) now: u64,
    /// Hundredths of a processor that threads share ideally; `None`: each executing thread has a processor.
    capacity: Option<u64>,
    /// Number of threads by phase.
    counts: [u32; PHASES],
    /// The place of the present number of busy processors.
    level: usize,
    /// Ticks for each place that stands for one number of computing threads ([`EXACT`]).
    pub(super) computing: Vec<u64>,
    /// Ticks by place, from the first place with several numbers on.
    crowds: Vec<u64>,
    /// For each place that stands for several numbers: normalized time of a thread that computed all the time, in parts
    /// of a tick, rounded down.
    pub(super) crowded: Vec<u128>,
    /// Such normalized time over all places.
    pub(super) normalized: u128,
    /// Present number of runnable threads.
    wanting: u32,
    /// Ticks by number of runnable threads; the last one, [`MOST_RUNNABLE`], stands for more, too.
    pub(super) runnable: Vec<u64>,
    /// Ticks multiplied by the number of runnable threads.
    pub(super) runnable_ticks: u128,
    /// Where processors are shared: the part of these times that threads spent on a processor.
    pub(super) on: On,
    /// The share of a tick for each computing thread, in 2⁻⁶⁴, rounded down; 0 for at most one thread.
    each: u64,
}

impl Clock {
    /// `hundredths` of a processor that threads share ideally; `None`: no sharing.
    pub(super) fn new(hundredths: Option<u64>) -> Clock {
        let capacity = hundredths.map(|hundredths| hundredths.max(1));
        let mut clock = Clock { capacity, ..Clock::default() };
        clock.turn();
        clock
    }

    /// Whether processors are shared, so that executing threads may have to wait for one.
    pub(super) fn shares(&self) -> bool {
        self.capacity.is_some()
    }

    /// The first place whose number of computing threads is not exact.
    pub(super) fn first_crowded(&self) -> usize {
        if self.shares() { 0 } else { EXACT as usize }
    }

    /// The place of the present number of busy processors.
    pub(super) fn level(&self) -> usize {
        self.level
    }

    /// The present number of busy processors.
    fn busy(&self) -> u32 {
        let [busy, ..] = self.counts;
        let part = |(above, below): (u128, u128)| (u128::from(busy) * above).div_ceil(below);
        self.part().map_or(busy, |of| u32::try_from(part(of)).unwrap_or(u32::MAX))
    }

    /// The part of the present time in which an executing thread has a processor, as a fraction; `None`: all of it.
    fn part(&self) -> Option<(u128, u128)> {
        let [busy, spinning, ..] = self.counts;
        let wanted = u128::from(busy.saturating_add(spinning)) * 100;
        let capacity = self.capacity.map(u128::from);
        capacity.filter(|capacity| wanted > *capacity).map(|capacity| (capacity, wanted))
    }

    /// Moves one thread from one phase to another, now.
    pub(super) fn change(&mut self, from: Phase, to: Phase) {
        if let Some(count) = from.place().and_then(|place| self.counts.get_mut(place)) {
            *count = count.saturating_sub(1);
        }
        if let Some(count) = to.place().and_then(|place| self.counts.get_mut(place)) {
            *count += 1;
        }
        self.turn();
    }

    /// Selects the clocks that run from now on, by the numbers of threads in each phase.
    fn turn(&mut self) {
        self.level = place_of(self.busy());
        let [computing, spinning, ready, _] = self.counts;
        self.wanting = computing.saturating_add(spinning).saturating_add(ready);
        self.each = if computing > 1 { part_of_each(computing) } else { 0 };
    }

    /// Advances the running clocks to this time, ticks.
    #[inline]
    pub(super) fn advance(&mut self, to: u64) {
        let passed = to.saturating_sub(self.now);
        if passed == 0 {
            return;
        }
        self.now = to;
        *at(&mut self.runnable, (self.wanting as usize).min(MOST_RUNNABLE)) += passed;
        self.runnable_ticks += u128::from(passed) * u128::from(self.wanting);
        let [computing, ..] = self.counts;
        let normalized = match computing {
            0 => 0,
            1 => u128::from(passed) * SCALE,
            _ => (u128::from(passed) * u128::from(self.each)) >> 24,
        };
        self.normalized += normalized;
        match self.level.checked_sub(self.first_crowded()) {
            None => *at(&mut self.computing, self.level) += passed,
            Some(place) => {
                *at(&mut self.crowds, place) += passed;
                *at(&mut self.crowded, place) += normalized;
            }
        }
        if self.shares() {
            self.share(passed);
        }
    }

    /// Advances the clocks of time on a processor, where processors are shared.
    fn share(&mut self, passed: u64) {
        let time = u128::from(passed) * SCALE;
        let on =
            self.part().map_or(time, |(above, below)| time / below * above + time % below * above / below);
        *at(&mut self.on.by_runnable, (self.wanting as usize).min(MOST_RUNNABLE)) += on;
        self.on.time += on;
        self.on.runnable = self.on.runnable.wrapping_add(on.wrapping_mul(self.wanting.into()));
    }

    /// Ticks by place of the number of busy processors.
    pub(super) fn levels(&self) -> Vec<u64> {
        let mut levels = self.computing.clone();
        for (place, ticks) in self.crowds.iter().enumerate() {
            *at(&mut levels, self.first_crowded() + place) += ticks;
        }
        levels
    }
}

/// 2⁶⁴ divided by this number of threads, at least two, rounded down.
fn part_of_each(among: u32) -> u64 {
    // A table, since numbers of threads change often and a division is slow.
    const FEW: usize = 128;
    const PARTS: [u64; FEW] = {
        let mut parts = [0; FEW];
        let mut among = 2;
        while among < FEW {
            parts[among] = ((1 << 64) / among as u128) as u64;
            among += 1;
        }
        parts
    };
    let known = PARTS.get(among as usize).copied();
    known.unwrap_or_else(|| u64::try_from((1 << 64) / u128::from(among.max(2))).unwrap_or(u64::MAX))
}

/// The element at this place; extends the list up to there.
#[inline]
pub(super) fn at<T: Clone + Default>(list: &mut Vec<T>, place: usize) -> &mut T {
    if list.len() <= place {
        list.resize(place + 1, T::default());
    }
    &mut list[place]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_of_busy_counts_are_in_order_and_within_a_thirtieth() {
        let mut before = 0;
        for busy in (0..100_000).chain([1 << 20, u32::MAX - 1, u32::MAX]) {
            let place = place_of(busy);
            assert!(place >= before, "{busy}");
            before = place;
            let told = busy_at(place);
            assert!(told.abs_diff(busy) <= busy / 30, "{busy}: {told}");
            assert_eq!(place_of(told), place, "{busy}");
        }
        assert!(before < 600, "{before}");
    }

    #[test]
    fn the_level_of_busy_cpus_counts_computing_threads_only() {
        let mut clock = Clock::new(Some(200));
        for _ in 0..3 {
            clock.change(Phase::Off, Phase::Busy);
        }
        assert_eq!(clock.level(), 2, "three threads on two processors");
        clock.advance(3);
        assert_eq!(clock.normalized, SCALE - 1, "each gets a third of three ticks, rounded down");
        clock.change(Phase::Busy, Phase::Spinning);
        assert_eq!(clock.level(), 2, "4/3 rounded up");
        clock.change(Phase::Busy, Phase::Spinning);
        assert_eq!(clock.level(), 1);
        clock.change(Phase::Busy, Phase::Spinning);
        assert_eq!(clock.level(), 0, "nobody computes");
        clock.advance(10);
        assert_eq!(clock.levels(), [7, 0, 3]);
        assert_eq!(clock.normalized, SCALE - 1);
    }

    #[test]
    fn ticks_are_divided_exactly_except_for_the_last_part() {
        for (ticks, among) in [(1, 3), (7, 2), (u64::MAX, 7), (1 << 62, 1 << 30), (5, 127), (5, 128)] {
            let mut clock = Clock::new(None);
            clock.counts[0] = among;
            clock.turn();
            clock.advance(ticks);
            let exact = u128::from(ticks) * SCALE / u128::from(among);
            assert!(exact - clock.normalized <= 1 << 40, "{ticks} among {among}");
            assert!(exact - clock.normalized <= 1 || ticks > 1 << 24, "{ticks} among {among}");
        }
    }

    #[test]
    fn with_unlimited_cpus_every_computing_thread_has_one() {
        let mut clock = Clock::new(None);
        clock.change(Phase::Off, Phase::Busy);
        clock.advance(5);
        clock.change(Phase::Off, Phase::Busy);
        clock.change(Phase::Off, Phase::Ready);
        clock.advance(9);
        assert_eq!(clock.levels(), [0, 5, 4]);
        assert_eq!(clock.runnable, [0, 5, 0, 4]);
        assert_eq!((clock.normalized, clock.runnable_ticks), (7 * SCALE, 17));
    }
}
