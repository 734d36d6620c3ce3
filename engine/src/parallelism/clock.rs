//! Clocks that all threads share, so that time which passes costs the same however many threads compute: a thread's time is
//! the difference between what they say when it begins to do something and when it ends ([`super::tally`]).
//!
//! Normalized processor time (1989, Equation 1) is the integral of dt ÷ (number of busy processors) over the time that a
//! thread computes. While n threads compute, each of them gets dt ÷ n. One clock for each n counts whole ticks, which are
//! divided by n when the run is over ([`super::balance`]): so nothing is rounded on the way, and all of it is machine words.
//! Large n share clocks ([`place_of`]), so that a change costs the same with a hundred threads and with a hundred thousand.
//! These count dt ÷ n in parts of a tick, rounded down: after a thousand million changes that is a thousandth of a tick.
//!
//! Ideally shared processors (2001, section 2.3) may have more executing threads than processors: each of n
//! threads on P processors runs for P ÷ n of the time, and is ready for the rest. Then the *busy processors*
//! are those of the P that compute, P · (computing ÷ executing), rounded up to a whole number. A thread's
//! processor time divided by them is again dt ÷ (number of computing threads). A thread that spins keeps its
//! processor, but is not busy (section 3.1: "spin time is factored out"): it is among the executing and not
//! among the computing.

/// Parts of a tick in what is divided.
pub(super) const SCALE: u128 = 1 << 40;

/// Distributions distinguish numbers of runnable threads up to here, and count more as this many; averages do
/// not.
pub(super) const MOST_RUNNABLE: usize = 32;

/// What a thread does (section 3.1, Table 1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Phase {
    /// It computes on a processor.
    Busy,
    /// It keeps a processor and only waits.
    Spinning,
    /// It wants a processor.
    Ready,
    /// It waits without one.
    Blocked,
    /// It has not begun, or is over, or is unknown.
    #[default]
    Off,
}

/// Number of [`Phase`]s of a thread that lives.
pub(super) const PHASES: usize = 4;

impl Phase {
    /// Its place among those of a thread that lives.
    #[inline]
    pub(super) fn place(self) -> Option<usize> {
        (self != Phase::Off).then_some(self as usize)
    }
}

/// Of threads that execute, those before this place of a phase.
pub(super) const EXECUTING: usize = 2;

/// Numbers of busy processors that have a clock of their own.
const EXACT: u32 = 64;
/// Above that, clocks between a number and its double: each is of numbers that differ by a sixteenth at most.
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

/// The busy processors that a place stands for: the middle of its numbers.
pub(super) fn busy_at(place: usize) -> u32 {
    let place = u32::try_from(place).unwrap_or(u32::MAX);
    if place < EXACT {
        return place;
    }
    let (doublings, part) = ((place - EXACT) / PARTS, (place - EXACT) % PARTS);
    let width = (EXACT / PARTS).checked_shl(doublings).unwrap_or(u32::MAX);
    (PARTS + part).saturating_mul(width).saturating_add(width / 2)
}

/// What a thread that executes all along is on a processor, where those are shared; in parts of a tick, rounded down.
#[derive(Clone, Debug, Default)]
pub(super) struct On {
    /// By runnable threads.
    pub(super) by_runnable: Vec<u128>,
    pub(super) time: u128,
    /// Multiplied by the number of runnable threads.
    pub(super) runnable: u128,
}

/// See the module.
#[derive(Clone, Debug, Default)]
pub(super) struct Clock {
    /// Ticks.
    pub(super) now: u64,
    /// Hundredths of a processor that threads share ideally; `None`: each thread that executes has one.
    capacity: Option<u64>,
    /// Threads by phase.
    counts: [u32; PHASES],
    /// The place of the busy processors.
    level: usize,
    /// Ticks by that place, where it stands for a single number of computing threads ([`EXACT`]).
    pub(super) computing: Vec<u64>,
    /// Ticks by place from the first other one on.
    crowds: Vec<u64>,
    /// By the same, the normalized time of a thread that computed all along, in parts of a tick, rounded down.
    pub(super) crowded: Vec<u128>,
    /// The same at all places.
    pub(super) normalized: u128,
    /// Runnable threads.
    wanting: u32,
    /// Ticks by that number, [`MOST_RUNNABLE`] for more.
    pub(super) runnable: Vec<u64>,
    /// Ticks multiplied by the number of runnable threads.
    pub(super) runnable_ticks: u128,
    /// Of these times, where processors are shared.
    pub(super) on: On,
    /// What each of the computing threads gets of a tick, in 2⁻⁶⁴ of it, rounded down; unless there is one at most.
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

    /// Whether threads that execute may be ready at the same time.
    pub(super) fn shares(&self) -> bool {
        self.capacity.is_some()
    }

    /// The first place that is not of one number of computing threads alone.
    pub(super) fn first_crowded(&self) -> usize {
        if self.shares() { 0 } else { EXACT as usize }
    }

    /// The place of the busy processors now.
    pub(super) fn level(&self) -> usize {
        self.level
    }

    /// The busy processors now.
    fn busy(&self) -> u32 {
        let [busy, ..] = self.counts;
        let part = |(above, below): (u128, u128)| (u128::from(busy) * above).div_ceil(below);
        self.part().map_or(busy, |of| u32::try_from(part(of)).unwrap_or(u32::MAX))
    }

    /// The part of the time that an executing thread has a processor now, as a fraction; `None`: all the time.
    fn part(&self) -> Option<(u128, u128)> {
        let [busy, spinning, ..] = self.counts;
        let wanted = u128::from(busy.saturating_add(spinning)) * 100;
        let capacity = self.capacity.map(u128::from);
        capacity.filter(|capacity| wanted > *capacity).map(|capacity| (capacity, wanted))
    }

    /// A thread changes from one phase to another, now.
    pub(super) fn change(&mut self, from: Phase, to: Phase) {
        if let Some(count) = from.place().and_then(|place| self.counts.get_mut(place)) {
            *count = count.saturating_sub(1);
        }
        if let Some(count) = to.place().and_then(|place| self.counts.get_mut(place)) {
            *count += 1;
        }
        self.turn();
    }

    /// From now on the clocks of what threads do now go.
    fn turn(&mut self) {
        self.level = place_of(self.busy());
        let [computing, spinning, ready, _] = self.counts;
        self.wanting = computing.saturating_add(spinning).saturating_add(ready);
        self.each = if computing > 1 { part_of_each(computing) } else { 0 };
    }

    /// Time passes up to then.
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

    /// Time passes in which processors are shared.
    fn share(&mut self, passed: u64) {
        let time = u128::from(passed) * SCALE;
        let on =
            self.part().map_or(time, |(above, below)| time / below * above + time % below * above / below);
        *at(&mut self.on.by_runnable, (self.wanting as usize).min(MOST_RUNNABLE)) += on;
        self.on.time += on;
        self.on.runnable = self.on.runnable.wrapping_add(on.wrapping_mul(self.wanting.into()));
    }

    /// Ticks by place of the busy processors.
    pub(super) fn levels(&self) -> Vec<u64> {
        let mut levels = self.computing.clone();
        for (place, ticks) in self.crowds.iter().enumerate() {
            *at(&mut levels, self.first_crowded() + place) += ticks;
        }
        levels
    }
}

/// 2⁶⁴ divided by a number of threads, two at least, rounded down.
fn part_of_each(among: u32) -> u64 {
    // Numbers of threads change all the time, and a division takes long.
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

/// The place of a list, which grows up to there.
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
    fn places_are_in_order_and_near_what_they_stand_for() {
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
    fn busy_processors_are_those_that_compute_of_all_there_are() {
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
    fn ticks_are_divided_exactly_but_for_the_last_part() {
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
    fn without_sharing_every_computing_thread_has_a_processor() {
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
