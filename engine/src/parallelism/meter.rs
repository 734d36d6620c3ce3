//! What the clocks say of one row: how far they went while it had the processor, waited, or was on a stack.

use super::clock::{Clock, PHASES, Phase, at};

/// What has passed for a thread since it was looked at last.
#[derive(Clone, Debug, Default)]
pub(super) struct Passed {
    /// By busy processors; empty unless it computed.
    normalized: Vec<u128>,
    pub(super) normalized_all: u128,
    /// Its phase; and being ready, of a thread that executes on processors that are shared.
    phases: [InPhase; 2],
    /// How many of these count.
    count: usize,
}

/// Time in a phase.
#[derive(Clone, Debug, Default)]
struct InPhase {
    /// The phase's place.
    place: usize,
    /// Time by runnable threads; all of it; the time multiplied by the runnable threads.
    by_runnable: Vec<u128>,
    time: u128,
    runnable: u128,
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

    /// What has passed since for a thread that was in this phase all along.
    pub(super) fn passed(&self, clock: &Clock, phase: Phase, passed: &mut Passed) {
        passed.normalized.clear();
        (passed.normalized_all, passed.count) = (0, 0);
        let Some(place) = phase.place() else { return };
        if phase == Phase::Busy {
            difference(&clock.normalized, &self.normalized, &mut passed.normalized);
            passed.normalized_all = clock.normalized_all.wrapping_sub(self.normalized_all);
        }
        let [own, ready] = &mut passed.phases;
        own.place = place;
        difference(&clock.time, &self.time, &mut own.by_runnable);
        own.runnable = clock.runnable.wrapping_sub(self.runnable);
        passed.count = 1;
        if clock.shares() && matches!(phase, Phase::Busy | Phase::Spinning) {
            ready.place = Phase::Ready.place().unwrap_or_default();
            difference(&clock.work, &self.work, &mut ready.by_runnable);
            std::mem::swap(&mut own.by_runnable, &mut ready.by_runnable);
            each(&mut ready.by_runnable, &own.by_runnable, u128::wrapping_sub);
            let worked = clock.runnable_work.wrapping_sub(self.runnable_work);
            ready.runnable = own.runnable.wrapping_sub(worked);
            own.runnable = worked;
            ready.time = ready.by_runnable.iter().sum();
            passed.count = 2;
        }
        own.time = own.by_runnable.iter().sum();
    }

    /// Looks at what matters to a thread that is in this phase from now on.
    pub(super) fn look(&mut self, clock: &Clock, phase: Phase) {
        self.now = clock.now;
        if phase == Phase::Off {
            return;
        }
        if phase == Phase::Busy {
            self.normalized.clone_from(&clock.normalized);
            self.normalized_all = clock.normalized_all;
        }
        self.time.clone_from(&clock.time);
        self.runnable = clock.runnable;
        if clock.shares() {
            self.work.clone_from(&clock.work);
            self.runnable_work = clock.runnable_work;
        }
    }
}

impl Passed {
    fn phases(&self) -> &[InPhase] {
        self.phases.get(..self.count).unwrap_or_default()
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
        for phase in passed.phases() {
            add(&mut self.by_runnable[phase.place], &phase.by_runnable, u128::wrapping_add);
            self.runnable[phase.place] = self.runnable[phase.place].wrapping_add(phase.runnable);
        }
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
        for phase in passed.phases() {
            self.time[phase.place] = self.time[phase.place].wrapping_add(phase.time);
            self.runnable[phase.place] = self.runnable[phase.place].wrapping_add(phase.runnable);
        }
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

#[inline]
fn add(to: &mut Vec<u128>, from: &[u128], with: impl Fn(u128, u128) -> u128) {
    if let Some(last) = from.len().checked_sub(1) {
        at(to, last);
    }
    each(to, from, with);
}

#[inline]
fn each(to: &mut [u128], from: &[u128], with: impl Fn(u128, u128) -> u128) {
    to.iter_mut().zip(from).for_each(|(to, from)| *to = with(*to, *from));
}
