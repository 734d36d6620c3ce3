//! A tally has how much the clocks advanced during a thread's activities, and the rows' parts of that. When a thread
//! begins an activity, the clocks' values are subtracted from its tally; when the activity ends, they are added. So
//! work of other threads takes no time for this thread's tally. A row gets the growth of a thread's tally in the same
//! way, as the difference between two moments (2001, section 2.2).

use super::clock::{Clock, EXECUTING, On, PHASES, Phase};

/// A thread's times so far. For its present phase they lack the clocks' values at the phase's end, so they wrap around.
#[derive(Clone, Debug, Default)]
pub(super) struct Tally {
    /// Ticks for each place, like [`Clock::computing`] and [`Clock::crowded`].
    computing: Vec<u64>,
    phases: [Had; PHASES],
    /// Normalized time, in parts of a tick.
    pub(super) normalized: u128,
    crowded: Vec<u128>,
    /// Time on a processor in each phase in which the thread executes, where processors are shared.
    on: [On; EXECUTING],
}

/// The time of a thread in one phase.
#[derive(Clone, Debug, Default)]
struct Had {
    /// Ticks by number of runnable threads.
    by_runnable: Vec<u64>,
    time: u64,
    /// Ticks multiplied by the number of runnable threads.
    runnable: u128,
}

impl Tally {
    /// The thread begins this phase now.
    pub(super) fn begin(&mut self, clock: &Clock, phase: Phase) {
        self.shift(clock, phase, u64::wrapping_sub, u128::wrapping_sub);
    }

    /// The thread's phase ends now.
    pub(super) fn end(&mut self, clock: &Clock, phase: Phase) {
        self.shift(clock, phase, u64::wrapping_add, u128::wrapping_add);
    }

    #[inline(always)]
    fn shift(
        &mut self,
        clock: &Clock,
        phase: Phase,
        by: impl Fn(u64, u64) -> u64 + Copy,
        by_long: impl Fn(u128, u128) -> u128 + Copy,
    ) {
        let Some(place) = phase.place() else { return };
        let had = &mut self.phases[place];
        each(&mut had.by_runnable, &clock.runnable, by);
        had.time = by(had.time, clock.now);
        had.runnable = by_long(had.runnable, clock.runnable_ticks);
        if let Some(on) = self.on.get_mut(place).filter(|_| clock.shares()) {
            each(&mut on.by_runnable, &clock.on.by_runnable, by_long);
            on.time = by_long(on.time, clock.on.time);
            on.runnable = by_long(on.runnable, clock.on.runnable);
        }
        if phase == Phase::Busy {
            each(&mut self.computing, &clock.computing, by);
            each(&mut self.crowded, &clock.crowded, by_long);
            self.normalized = by_long(self.normalized, clock.normalized);
        }
    }
}

/// The times of a row, as in a [`Tally`]; sums over many threads may exceed a machine word. Time on its behalf is not split
/// by the number of runnable threads.
#[derive(Clone, Debug, Default)]
pub(super) struct Sum {
    pub(super) computing: Vec<u128>,
    pub(super) crowded: Vec<u128>,
    pub(super) by_runnable: [Vec<u128>; PHASES],
    pub(super) time: [u128; PHASES],
    pub(super) runnable: [u128; PHASES],
    pub(super) on: [On; EXECUTING],
}

/// Whether a row begins or stops to get a thread's time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    From,
    To,
}

impl Sum {
    /// Subtracts or adds the thread's time in this phase as self time of the row. The phase must not be the thread's
    /// present one.
    pub(super) fn own(&mut self, tally: &Tally, phase: usize, side: Side) {
        if Some(phase) == Phase::Busy.place() {
            side.each(&mut self.computing, &tally.computing);
            side.each(&mut self.crowded, &tally.crowded);
        }
        let had = &tally.phases[phase];
        side.each(&mut self.by_runnable[phase], &had.by_runnable);
        self.runnable[phase] = side.by(self.runnable[phase], had.runnable);
        if let (Some(to), Some(on)) = (self.on.get_mut(phase), tally.on.get(phase)) {
            side.each(&mut to.by_runnable, &on.by_runnable);
            to.runnable = side.by(to.runnable, on.runnable);
        }
    }

    /// Subtracts or adds all time of a thread that is in no phase now, as time on the row's behalf.
    pub(super) fn whole(&mut self, tally: &Tally, side: Side) {
        side.each(&mut self.computing, &tally.computing);
        side.each(&mut self.crowded, &tally.crowded);
        for (place, had) in tally.phases.iter().enumerate() {
            self.time[place] = side.by(self.time[place], had.time.into());
            self.runnable[place] = side.by(self.runnable[place], had.runnable);
        }
        for (to, on) in self.on.iter_mut().zip(&tally.on) {
            to.time = side.by(to.time, on.time);
            to.runnable = side.by(to.runnable, on.runnable);
        }
    }
}

impl Side {
    pub(super) fn by(self, to: u128, from: u128) -> u128 {
        match self {
            Side::From => to.wrapping_sub(from),
            Side::To => to.wrapping_add(from),
        }
    }

    fn each<T: Copy + Into<u128>>(self, to: &mut Vec<u128>, from: &[T]) {
        match self {
            Side::From => each(to, from, |to, from: T| to.wrapping_sub(from.into())),
            Side::To => each(to, from, |to, from: T| to.wrapping_add(from.into())),
        }
    }
}

/// A plain loop, so that this innermost loop becomes vector instructions without a call.
#[inline(always)]
fn each<T: Copy + Default, F: Copy>(to: &mut Vec<T>, from: &[F], with: impl Fn(T, F) -> T) {
    if to.len() < from.len() {
        to.resize(from.len(), T::default());
    }
    let to = &mut to[..from.len()];
    for place in 0..from.len() {
        to[place] = with(to[place], from[place]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_of_many_threads_may_exceed_a_machine_word() {
        let mut clock = Clock::new(None);
        let mut tally = Tally::default();
        tally.begin(&clock, Phase::Blocked);
        clock.advance(u64::MAX - 1);
        tally.end(&clock, Phase::Blocked);
        let mut sum = Sum::default();
        for _ in 0..1_000 {
            sum.own(&tally, 3, Side::To);
        }
        assert_eq!(sum.by_runnable[3], [1_000 * u128::from(u64::MAX - 1)]);
    }

    #[test]
    fn a_row_has_only_the_time_in_which_the_thread_was_in_it() {
        let mut clock = Clock::new(None);
        let (mut tally, mut sum) = (Tally::default(), Sum::default());
        clock.change(Phase::Off, Phase::Busy);
        tally.begin(&clock, Phase::Busy);
        clock.advance(10);
        tally.end(&clock, Phase::Busy);
        sum.whole(&tally, Side::From);
        tally.begin(&clock, Phase::Busy);
        clock.change(Phase::Off, Phase::Busy);
        clock.advance(17);
        tally.end(&clock, Phase::Busy);
        sum.whole(&tally, Side::To);
        assert_eq!(sum.computing, [0, 0, 7], "ticks by computing threads");
        assert_eq!((sum.time[0], sum.runnable[0]), (7, 14));
    }
}
