//! What the clocks say of one row: how far they went while it had the processor, waited, or was on a stack.

use super::clock::{Clock, PHASES, Phase, at};

/// What has passed for a thread since it was looked at last.
#[derive(Clone, Debug, Default)]
pub(super) struct Passed {
    /// By busy processors; empty unless it computed.
    pub(super) normalized: Vec<u128>,
    pub(super) normalized_all: u128,
    /// By phase: time by runnable threads; the time; the time multiplied by the runnable threads.
    pub(super) by_runnable: [Vec<u128>; PHASES],
    pub(super) time: [u128; PHASES],
    pub(super) runnable: [u128; PHASES],
}

/// What the clocks said when a thread was looked at last.
#[derive(Clone, Debug, Default)]
pub(super) struct Reading {
    now: u64,
    normalized: Vec<u128>,
    normalized_all: u128,
    time: Vec<u128>,
    work: Vec<u128>,
    runnable: u128,
    runnable_work: u128,
}

impl Reading {
    /// Whether nothing has passed since.
    #[inline]
    pub(super) fn is_of(&self, now: u64) -> bool {
        self.now == now
    }

    /// Looks again: what has passed since for a thread that was in this phase all along.
    pub(super) fn next(&mut self, clock: &Clock, phase: Phase, passed: &mut Passed) {
        passed.clear();
        let executes = matches!(phase, Phase::Busy | Phase::Spinning);
        if phase == Phase::Busy {
            difference(&clock.normalized, &self.normalized, &mut passed.normalized);
            passed.normalized_all = clock.normalized_all.wrapping_sub(self.normalized_all);
        }
        if let Some(place) = phase.place() {
            let by_runnable = &mut passed.by_runnable[place];
            difference(&clock.time, &self.time, by_runnable);
            passed.runnable[place] = clock.runnable.wrapping_sub(self.runnable);
            if executes && clock.shares() {
                let ready = Phase::Ready.place().unwrap_or_default();
                let mut worked = Vec::new();
                difference(&clock.work, &self.work, &mut worked);
                let mut waited = passed.by_runnable[place].clone();
                waited.iter_mut().zip(&worked).for_each(|(all, worked)| *all = all.wrapping_sub(*worked));
                passed.by_runnable[place] = worked;
                passed.by_runnable[ready] = waited;
                let runnable = clock.runnable_work.wrapping_sub(self.runnable_work);
                passed.runnable[ready] = passed.runnable[place].wrapping_sub(runnable);
                passed.runnable[place] = runnable;
                passed.time[ready] = passed.by_runnable[ready].iter().sum();
            }
            passed.time[place] = passed.by_runnable[place].iter().sum();
        }
        self.now = clock.now;
        self.normalized.clone_from(&clock.normalized);
        self.normalized_all = clock.normalized_all;
        self.time.clone_from(&clock.time);
        self.runnable = clock.runnable;
        if clock.shares() {
            self.work.clone_from(&clock.work);
            self.runnable_work = clock.runnable_work;
        }
    }
}

impl Passed {
    fn clear(&mut self) {
        self.normalized.clear();
        self.normalized_all = 0;
        self.by_runnable.iter_mut().for_each(Vec::clear);
        (self.time, self.runnable) = ([0; PHASES], [0; PHASES]);
    }
}

/// What of a longer list is beyond a shorter one.
fn difference(now: &[u128], before: &[u128], into: &mut Vec<u128>) {
    into.clear();
    let old = before.len().min(now.len());
    into.extend(now[..old].iter().zip(before).map(|(now, before)| now.wrapping_sub(*before)));
    into.extend_from_slice(&now[old..]);
}

/// What a row has had itself. All in parts of a tick.
#[derive(Clone, Debug, Default)]
pub(super) struct Meter {
    pub(super) normalized: Vec<u128>,
    pub(super) by_runnable: [Vec<u128>; PHASES],
    pub(super) runnable: [u128; PHASES],
}

impl Meter {
    pub(super) fn add(&mut self, passed: &Passed) {
        add(&mut self.normalized, &passed.normalized, u128::wrapping_add);
        for (own, passed) in self.by_runnable.iter_mut().zip(&passed.by_runnable) {
            add(own, passed, u128::wrapping_add);
        }
        each(&mut self.runnable, &passed.runnable, u128::wrapping_add);
    }

    /// Time by phase.
    pub(super) fn time(&self) -> [u128; PHASES] {
        self.by_runnable.each_ref().map(|times| times.iter().sum())
    }
}

/// What a row has had with all that was done on its behalf. A thread's own one goes on all the time; a row's is what the
/// threads' ones grew by while it was on their stacks, as the difference between then and now (as the engine's function
/// times, 2001, section 2.2).
#[derive(Clone, Debug, Default)]
pub(super) struct Total {
    pub(super) normalized: Vec<u128>,
    pub(super) normalized_all: u128,
    pub(super) time: [u128; PHASES],
    pub(super) runnable: [u128; PHASES],
}

impl Total {
    pub(super) fn pass(&mut self, passed: &Passed) {
        add(&mut self.normalized, &passed.normalized, u128::wrapping_add);
        self.normalized_all = self.normalized_all.wrapping_add(passed.normalized_all);
        each(&mut self.time, &passed.time, u128::wrapping_add);
        each(&mut self.runnable, &passed.runnable, u128::wrapping_add);
    }

    /// The row comes onto the stack of a thread that has had so much.
    pub(super) fn open(&mut self, thread: &Total) {
        self.combine(thread, u128::wrapping_sub);
    }

    /// The row leaves it.
    pub(super) fn close(&mut self, thread: &Total) {
        self.combine(thread, u128::wrapping_add);
    }

    fn combine(&mut self, thread: &Total, with: impl Fn(u128, u128) -> u128 + Copy) {
        add(&mut self.normalized, &thread.normalized, with);
        self.normalized_all = with(self.normalized_all, thread.normalized_all);
        each(&mut self.time, &thread.time, with);
        each(&mut self.runnable, &thread.runnable, with);
    }
}

fn add(to: &mut Vec<u128>, from: &[u128], with: impl Fn(u128, u128) -> u128) {
    if let Some(last) = from.len().checked_sub(1) {
        at(to, last);
    }
    each(to, from, with);
}

fn each(to: &mut [u128], from: &[u128], with: impl Fn(u128, u128) -> u128) {
    to.iter_mut().zip(from).for_each(|(to, from)| *to = with(*to, *from));
}
