//! Clocks that all threads share, so that time which passes costs the same however many threads compute: a thread reads
//! them when it begins to do something and when it ends.
//!
//! Normalized processor time (1989, Equation 1) is the integral of dt ÷ (number of busy processors) over the time that a
//! thread computes. While n threads compute, each of them gets dt ÷ n; one clock for each number of busy processors adds
//! that up, in 2⁻⁴⁰ of a tick, rounded down. What rounding takes is below a nanosecond in 10¹² changes of a thousand
//! computing threads; [`super::round`] gives it back, so that sums are exact.
//!
//! Processors that are shared ideally (2001, section 2.3) may have more executing threads than there are: n threads on P
//! processors are each on a processor for P ÷ n of the time. Then the *busy processors* are those of the P that compute,
//! P · (computing ÷ executing), rounded up to a whole number; a thread's processor time divided by them is again dt ÷
//! (number of computing threads). A thread that spins keeps its processor, but is not busy (section 3.1: "spin time is
//! factored out"): it is among the executing and not among the computing.

/// Parts of a tick that clocks count.
pub(super) const SCALE: u128 = 1 << 40;

/// Numbers of runnable threads are told apart up to here; more count as so many in distributions, not in averages.
pub(super) const MOST_RUNNABLE: usize = 32;

/// What a thread does (section 3.1, Table 1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Phase {
    /// It has not begun, or is over, or nobody knows.
    #[default]
    Off,
    /// It computes on a processor.
    Busy,
    /// It keeps a processor and only waits.
    Spinning,
    /// It wants a processor.
    Ready,
    /// It waits without one.
    Blocked,
}

/// Number of [`Phase`]s of a thread that lives.
pub(super) const PHASES: usize = 4;

impl Phase {
    /// Its place among those of a thread that lives.
    pub(super) fn place(self) -> Option<usize> {
        match self {
            Phase::Off => None,
            Phase::Busy => Some(0),
            Phase::Spinning => Some(1),
            Phase::Ready => Some(2),
            Phase::Blocked => Some(3),
        }
    }
}

/// See the module. All but `now` and `levels` in parts of a tick.
#[derive(Clone, Debug, Default)]
pub(super) struct Clock {
    /// Ticks.
    pub(super) now: u64,
    /// Processors that are shared ideally, as a fraction; `None`: each thread that executes has one.
    capacity: Option<(u128, u128)>,
    /// Threads by phase.
    counts: [u32; PHASES],
    /// Ticks by the number of busy processors.
    pub(super) levels: Vec<u64>,
    /// Normalized time of a thread that computed all along, by the number of busy processors.
    pub(super) normalized: Vec<u128>,
    /// The same of all numbers.
    pub(super) normalized_all: u128,
    /// Time by the number of runnable threads, and the same of a thread that executed all along: less where processors
    /// are shared.
    pub(super) time: Vec<u128>,
    pub(super) work: Vec<u128>,
    /// Time multiplied by the number of runnable threads; the same of a thread that executed all along.
    pub(super) runnable: u128,
    pub(super) runnable_work: u128,
}

impl Clock {
    /// `hundredths` of a processor that threads share ideally; `None`: no sharing.
    pub(super) fn new(hundredths: Option<u64>) -> Clock {
        let capacity = hundredths.map(|hundredths| (u128::from(hundredths.max(1)), 100));
        Clock { capacity, ..Clock::default() }
    }

    /// Whether threads that execute may be ready at the same time.
    pub(super) fn shares(&self) -> bool {
        self.capacity.is_some()
    }

    fn count(&self, phase: Phase) -> u128 {
        phase.place().and_then(|place| self.counts.get(place)).copied().unwrap_or(0).into()
    }

    /// The busy processors now.
    pub(super) fn level(&self) -> usize {
        let busy = self.count(Phase::Busy);
        let level = match self.crowded() {
            Some((above, below)) => (busy * above).div_ceil(below),
            None => busy,
        };
        usize::try_from(level).unwrap_or(usize::MAX)
    }

    /// The part of the time that an executing thread has a processor, where that is not all of it.
    fn crowded(&self) -> Option<(u128, u128)> {
        let (above, below) = self.capacity?;
        let wanted = (self.count(Phase::Busy) + self.count(Phase::Spinning)) * below;
        (wanted > above).then_some((above, wanted))
    }

    /// A thread changes from one phase to another, now.
    pub(super) fn change(&mut self, from: Phase, to: Phase) {
        if let Some(count) = from.place().and_then(|place| self.counts.get_mut(place)) {
            *count = count.saturating_sub(1);
        }
        if let Some(count) = to.place().and_then(|place| self.counts.get_mut(place)) {
            *count += 1;
        }
    }

    /// Time passes up to then.
    #[inline]
    pub(super) fn advance(&mut self, to: u64) {
        let passed = to.saturating_sub(self.now);
        if passed == 0 {
            return;
        }
        self.now = to;
        let level = self.level();
        *at(&mut self.levels, level) += passed;
        let busy = self.count(Phase::Busy);
        if busy > 0 {
            let each = shared(passed, busy);
            *at(&mut self.normalized, level) += each;
            self.normalized_all += each;
        }
        let passed = u128::from(passed) * SCALE;
        let runnable = busy + self.count(Phase::Spinning) + self.count(Phase::Ready);
        let place = usize::try_from(runnable).unwrap_or(usize::MAX).min(MOST_RUNNABLE);
        *at(&mut self.time, place) += passed;
        self.runnable = self.runnable.saturating_add(passed.saturating_mul(runnable));
        if self.shares() {
            let work = match self.crowded() {
                Some((above, below)) => passed / below * above + passed % below * above / below,
                None => passed,
            };
            *at(&mut self.work, place) += work;
            self.runnable_work = self.runnable_work.saturating_add(work.saturating_mul(runnable));
        }
    }
}

/// Ticks divided by a number of threads, in parts of a tick, rounded down: as machine words.
fn shared(ticks: u64, among: u128) -> u128 {
    let Ok(among) = u64::try_from(among) else { return 0 };
    let (whole, rest) = (ticks / among, ticks % among);
    let part = match rest.checked_mul(SCALE as u64) {
        Some(rest) => u128::from(rest / among),
        None => u128::from(rest) * SCALE / u128::from(among),
    };
    u128::from(whole) * SCALE + part
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
        assert_eq!(clock.normalized_all, SCALE, "each gets a third of three ticks");
        assert_eq!(clock.work.iter().sum::<u128>(), 2 * SCALE, "and two of them on a processor");
        clock.change(Phase::Busy, Phase::Spinning);
        assert_eq!(clock.level(), 2, "4/3 rounded up");
        clock.change(Phase::Busy, Phase::Spinning);
        assert_eq!(clock.level(), 1);
        clock.change(Phase::Busy, Phase::Spinning);
        assert_eq!(clock.level(), 0, "nobody computes");
        clock.advance(10);
        assert_eq!(clock.levels, [7, 0, 3]);
        assert_eq!(clock.normalized_all, SCALE);
    }

    #[test]
    fn ticks_are_divided_exactly_but_for_the_last_part() {
        for (ticks, among) in [(1, 3), (7, 2), (u64::MAX, 1), (u64::MAX, 7), (1 << 62, 1 << 30), (5, 1 << 40)]
        {
            assert_eq!(shared(ticks, among), u128::from(ticks) * SCALE / among, "{ticks} among {among}");
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
        assert_eq!(clock.normalized, [0, 5 * SCALE, 2 * SCALE]);
        assert_eq!(clock.time, [0, 5 * SCALE, 0, 4 * SCALE]);
        assert_eq!(clock.runnable, 17 * SCALE);
    }
}
