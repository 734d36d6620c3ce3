//! Clocks that all threads share, so that time which passes costs the same however many threads compute: a thread's time is
//! the difference between what they say when it begins to do something and when it ends ([`super::tally`]).
//!
//! Normalized processor time (1989, Equation 1) is the integral of dt ÷ (number of busy processors) over the time that a
//! thread computes. While n threads compute, each of them gets dt ÷ n. One clock for each n counts whole ticks, which are
//! divided by n when the run is over ([`super::scale`]): so nothing is rounded on the way, and all of it is machine words.
//!
//! Processors that are shared ideally (2001, section 2.3) may have more executing threads than there are: n threads on P
//! processors are each on a processor for P ÷ n of the time. Then the *busy processors* are those of the P that compute,
//! P · (computing ÷ executing), rounded up to a whole number; a thread's processor time divided by them is again dt ÷
//! (number of computing threads). A thread that spins keeps its processor, but is not busy (section 3.1: "spin time is
//! factored out"): it is among the executing and not among the computing.

use rustc_hash::FxHashMap;

/// Parts of a tick in what is divided.
pub(super) const SCALE: u128 = 1 << 40;

/// Numbers of runnable threads are told apart up to here; more count as so many in distributions, not in averages.
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
    /// It has not begun, or is over, or nobody knows.
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

/// What threads do at a place of a list of clocks: so many of some kind, and so many that execute.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Crowd {
    pub(super) count: u32,
    pub(super) executing: u32,
}

/// A list of clocks, of which one goes at a time, in ticks.
#[derive(Clone, Debug, Default)]
pub(super) struct Clocks {
    pub(super) ticks: Vec<u64>,
    /// The one that goes.
    place: usize,
    /// What the places stand for, where processors are shared; elsewhere each stands for its own number.
    crowds: Vec<Crowd>,
    numbers: FxHashMap<Crowd, usize>,
}

impl Clocks {
    /// From now on the clock of this crowd goes.
    #[inline]
    fn turn_to(&mut self, crowd: Crowd, shares: bool) {
        self.place = if shares { self.number(crowd) } else { crowd.count as usize };
        at(&mut self.ticks, self.place);
    }

    fn number(&mut self, crowd: Crowd) -> usize {
        let next = self.crowds.len();
        let place = *self.numbers.entry(crowd).or_insert(next);
        if place == next {
            self.crowds.push(crowd);
        }
        place
    }

    #[inline]
    fn pass(&mut self, ticks: u64) {
        if let Some(clock) = self.ticks.get_mut(self.place) {
            *clock += ticks;
        }
    }

    /// What a place stands for.
    pub(super) fn crowd(&self, place: usize) -> Crowd {
        let own = u32::try_from(place).unwrap_or(u32::MAX);
        self.crowds.get(place).copied().unwrap_or(Crowd { count: own, executing: 0 })
    }
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
    /// By computing threads.
    pub(super) computing: Clocks,
    /// By runnable threads; where processors are not shared, [`MOST_RUNNABLE`] stands for more, too.
    pub(super) runnable: Clocks,
    /// Ticks multiplied by the number of runnable threads.
    pub(super) runnable_ticks: u128,
    /// Normalized time of a thread that computed all along, in parts of a tick, rounded down.
    pub(super) normalized: u128,
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

    /// The busy processors now.
    pub(super) fn level(&self) -> usize {
        let [busy, spinning, ..] = self.counts;
        self.level_of(Crowd { count: busy, executing: busy + spinning })
    }

    /// The busy processors while so many compute.
    pub(super) fn level_of(&self, computing: Crowd) -> usize {
        let busy = u128::from(computing.count);
        let (above, below) = self.part(computing);
        usize::try_from((busy * above).div_ceil(below)).unwrap_or(usize::MAX)
    }

    /// The part of the time that an executing thread of these has a processor, as a fraction.
    pub(super) fn part(&self, crowd: Crowd) -> (u128, u128) {
        let wanted = u128::from(crowd.executing) * 100;
        let capacity = self.capacity.map(u128::from);
        capacity.filter(|capacity| wanted > *capacity).map_or((1, 1), |capacity| (capacity, wanted))
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
        let [busy, spinning, ready, _] = self.counts;
        let executing = busy + spinning;
        let shares = self.shares();
        self.computing.turn_to(Crowd { count: busy, executing }, shares);
        let runnable = executing + ready;
        let told = if shares { runnable } else { runnable.min(MOST_RUNNABLE as u32) };
        self.runnable.turn_to(Crowd { count: told, executing }, shares);
        self.each = if busy > 1 { part_of_each(busy) } else { 0 };
    }

    /// Time passes up to then.
    #[inline]
    pub(super) fn advance(&mut self, to: u64) {
        let passed = to.saturating_sub(self.now);
        if passed == 0 {
            return;
        }
        self.now = to;
        self.computing.pass(passed);
        self.runnable.pass(passed);
        let [busy, spinning, ready, _] = self.counts;
        self.runnable_ticks += u128::from(passed) * u128::from(busy + spinning + ready);
        self.normalized += match busy {
            0 => 0,
            1 => u128::from(passed) * SCALE,
            _ => (u128::from(passed) * u128::from(self.each)) >> 24,
        };
    }

    /// Ticks by the number of busy processors.
    pub(super) fn levels(&self) -> Vec<u64> {
        let mut levels = Vec::new();
        for (place, ticks) in self.computing.ticks.iter().enumerate() {
            *at(&mut levels, self.level_of(self.computing.crowd(place))) += ticks;
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
        assert_eq!(clock.runnable.ticks, [0, 5, 0, 4]);
        assert_eq!((clock.normalized, clock.runnable_ticks), (7 * SCALE, 17));
    }
}
