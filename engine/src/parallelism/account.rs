//! Computes the accounts of a run in one pass: which threads compute, spin or wait, in which function, with which
//! locks, on whose behalf (1989, sections 3.1 and 3.3). The caller reports events in order of time.
//!
//! - **Profile stack** (section 3.3): a thread's open functions, and objects from the thread's arrival until it need
//!   not wait any more. A lock stays until it is released, so a critical section belongs to its lock. An entry need not
//!   be on top when it is removed.
//! - **Self** of a function: time while it is the topmost function. Of an object: while it is the innermost object. Of
//!   a thread: all its time. So functions divide the time among them, and so do threads; objects lie across.
//! - **On its behalf**: time while the row is anywhere on a stack, counted once even if it is there several times.
//! - **A thread inherits the stack of its creator** (section 3.3), functions and threads only. A lock is not inherited:
//!   the created thread does not work in the critical section.
//!
//! A thread's change of phase takes O(distinguished numbers of busy processors and of runnable threads: some hundred),
//! whatever the number of threads. A call costs as much as the changes inside it. Memory grows with rows and threads,
//! not with events.

use super::balance::{Balance, Meter, Total};
use super::clock::{Clock, PHASES, Phase, at};
use super::tally::{Side, Sum, Tally};
use rustc_hash::{FxHashMap, FxHashSet};

/// No row.
pub(super) const NONE: u32 = u32::MAX;

/// Numbering of rows: functions, then the row outside of all functions, objects, threads, and parts of functions' time that
/// samples divide.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Places {
    pub(super) functions: u32,
    pub(super) objects: u32,
    pub(super) threads: u32,
}

impl Places {
    /// The row of code outside of any function.
    pub(super) fn outside(self) -> u32 {
        self.functions
    }

    pub(super) fn object(self, object: u32) -> u32 {
        self.functions + 1 + object
    }

    pub(super) fn thread(self, thread: u32) -> u32 {
        self.object(self.objects) + thread
    }

    /// The row of functions that stands for this part of their time.
    pub(super) fn part(self, part: u32) -> u32 {
        self.thread(self.threads).saturating_add(part)
    }

    pub(super) fn is_object(self, row: u32) -> bool {
        (self.object(0)..self.object(self.objects)).contains(&row)
    }

    fn is_thread(self, row: u32) -> bool {
        (self.thread(0)..self.part(0)).contains(&row)
    }
}

/// A row on a thread's stack. A row that occurs several times has one frame, at its outermost place.
#[derive(Clone, Copy, Debug)]
struct Frame {
    row: u32,
    /// The function or object below the row on the stack, or [`NONE`].
    caller: u32,
    /// Whether the row is from the stack of another thread, on whose behalf this thread works.
    is_others: bool,
}

/// The row that gets a thread's time as the row's self time.
#[derive(Clone, Copy, Debug)]
struct Own {
    row: u32,
    /// Phases of the thread since its time began to count for the row.
    phases: [bool; PHASES],
}

impl Own {
    fn of(row: u32) -> Own {
        Own { row, phases: [false; PHASES] }
    }
}

#[derive(Debug)]
struct Actor {
    phase: Phase,
    tally: Tally,
    /// Whether the tally contains everything up to now, and the next phase has not begun in it.
    is_settled: bool,
    own: Own,
    /// The innermost object.
    object: Own,
    /// The thread's normalized time when `own` or `object` changed last.
    both_since: u128,
    /// The object that the thread waits for.
    waits_for: u32,
    stack: Vec<Frame>,
    /// Functions that the thread itself called and that have not returned; a function called several times occurs
    /// several times.
    calls: Vec<u32>,
    /// For each row that has a frame on the stack: how many times the row was entered.
    open: FxHashMap<u32, u32>,
}

/// Calls from one row to another.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Arc {
    pub(super) calls: u64,
    /// Normalized time on the callee's behalf, in parts of a tick.
    pub(super) normalized: u128,
}

/// Number of threads that waited for an object, over time.
#[derive(Clone, Debug, Default)]
pub(super) struct Waiting {
    count: u32,
    since: u64,
    /// Ticks by the number of waiting threads.
    pub(super) lengths: Vec<u64>,
}

/// The accounts of a run; see the module.
#[derive(Debug)]
pub(super) struct Account {
    pub(super) places: Places,
    pub(super) clock: Clock,
    /// For each row: self time (except for rows of threads), and time on the row's behalf.
    meters: Vec<Sum>,
    totals: Vec<Sum>,
    /// For each row: normalized time of threads that the row created or woke.
    others: Vec<u128>,
    calls: Vec<u64>,
    queues: Vec<Waiting>,
    arcs: FxHashMap<(u32, u32), Arc>,
    within: FxHashMap<(u32, u32), u128>,
    actors: Vec<Actor>,
    /// Threads with `is_settled`.
    settled: Vec<u32>,
}

impl Account {
    /// An account without time. `hundredths`: hundredths of a processor to share ideally.
    pub(super) fn new(places: Places, hundredths: Option<u64>) -> Account {
        let rows = places.part(0) as usize;
        let actor = |thread| Actor {
            phase: Phase::Off,
            tally: Tally::default(),
            is_settled: false,
            own: Own::of(places.outside()),
            object: Own::of(NONE),
            both_since: 0,
            waits_for: NONE,
            stack: vec![Frame { row: places.thread(thread), caller: NONE, is_others: false }],
            calls: Vec::new(),
            open: FxHashMap::from_iter([(places.thread(thread), 1)]),
        };
        Account {
            places,
            clock: Clock::new(hundredths),
            meters: vec![Sum::default(); rows],
            totals: vec![Sum::default(); rows],
            others: vec![0; rows],
            calls: vec![0; rows],
            queues: vec![Waiting::default(); places.objects as usize],
            arcs: FxHashMap::default(),
            within: FxHashMap::default(),
            actors: (0..places.threads).map(actor).collect(),
            settled: Vec::new(),
        }
    }

    /// Advances the time, in ticks from the start.
    #[inline]
    pub(super) fn now(&mut self, time: u64) {
        if time > self.clock.now {
            self.go_on();
            self.clock.advance(time);
        }
    }

    /// Begins the present phase of all settled threads again in their tallies.
    fn go_on(&mut self) {
        while let Some(thread) = self.settled.pop() {
            let Some(actor) = self.actors.get_mut(thread as usize) else { continue };
            actor.is_settled = false;
            let Some(place) = actor.phase.place() else { continue };
            for own in [&mut actor.own, &mut actor.object] {
                if !own.phases[place] && own.row != NONE {
                    own.phases[place] = true;
                    at(&mut self.meters, own.row as usize).own(&actor.tally, place, Side::From);
                }
            }
            actor.tally.begin(&self.clock, actor.phase);
        }
    }

    /// Adds the thread's time up to now to the thread's tally.
    #[inline]
    fn settle(&mut self, thread: u32) {
        let Some(actor) = self.actors.get_mut(thread as usize).filter(|actor| !actor.is_settled) else {
            return;
        };
        actor.tally.end(&self.clock, actor.phase);
        actor.is_settled = true;
        self.settled.push(thread);
    }

    /// Sets the thread's phase from now on, and the object that the thread waits for.
    pub(super) fn does(&mut self, thread: u32, phase: Phase, waits_for: u32) {
        let Some(actor) = self.actors.get(thread as usize) else { return };
        let (before, waited_for) = (actor.phase, actor.waits_for);
        if before != phase {
            self.settle(thread);
            self.clock.change(before, phase);
        }
        if let Some(actor) = self.actors.get_mut(thread as usize) {
            (actor.phase, actor.waits_for) = (phase, waits_for);
        }
        if waited_for != waits_for {
            self.queue(waited_for, false);
            self.queue(waits_for, true);
        }
    }

    fn queue(&mut self, object: u32, longer: bool) {
        let Some(queue) = self.queues.get_mut(object as usize) else { return };
        queue.pass(self.clock.now);
        queue.count = if longer { queue.count + 1 } else { queue.count.saturating_sub(1) };
    }

    /// The row that gets the thread's self time from now on: a function or a part.
    pub(super) fn is_in(&mut self, thread: u32, own: u32) {
        if self.actors.get(thread as usize).is_some_and(|actor| actor.own.row != own) {
            self.settle(thread);
            self.give(thread);
            if let Some(actor) = self.actors.get_mut(thread as usize) {
                close(&mut self.meters, std::mem::replace(&mut actor.own, Own::of(own)), &actor.tally);
            }
        }
    }

    /// Changes the innermost object of the settled thread.
    fn is_at(&mut self, thread: u32, object: u32) {
        self.give(thread);
        if let Some(actor) = self.actors.get_mut(thread as usize) {
            close(&mut self.meters, std::mem::replace(&mut actor.object, Own::of(object)), &actor.tally);
        }
    }

    /// Adds the settled thread's normalized time since the last change to the pair of its innermost object and its own
    /// row.
    fn give(&mut self, thread: u32) {
        let Some(actor) = self.actors.get_mut(thread as usize) else { return };
        let normalized = actor.tally.normalized.wrapping_sub(actor.both_since);
        actor.both_since = actor.tally.normalized;
        if actor.object.row != NONE && normalized > 0 {
            *self.within.entry((actor.object.row, actor.own.row)).or_default() += normalized;
        }
    }

    /// The function that the thread is in, or the row outside of functions.
    pub(super) fn top(&self, thread: u32) -> u32 {
        let calls = self.actors.get(thread as usize).map_or(&[][..], |actor| &actor.calls);
        calls.last().copied().unwrap_or(self.places.outside())
    }

    /// The thread calls a function.
    pub(super) fn call(&mut self, thread: u32, function: u32) {
        if let Some(actor) = self.actors.get_mut(thread as usize) {
            actor.calls.push(function);
        }
        self.enter(thread, function);
    }

    /// The thread's innermost function returns.
    pub(super) fn returns(&mut self, thread: u32) {
        let actor = self.actors.get_mut(thread as usize);
        if let Some(function) = actor.and_then(|actor| actor.calls.pop()) {
            self.leave(thread, function);
        }
    }

    /// The innermost object of the thread, or [`NONE`].
    pub(super) fn object(&self, thread: u32) -> u32 {
        self.actors.get(thread as usize).map_or(NONE, |actor| actor.object.row)
    }

    /// Whether the row is on the thread's stack.
    pub(super) fn is_open(&self, thread: u32, row: u32) -> bool {
        self.actors.get(thread as usize).is_some_and(|actor| actor.open.contains_key(&row))
    }

    /// Puts the row onto the thread's stack.
    pub(super) fn enter(&mut self, thread: u32, row: u32) {
        let Some(actor) = self.actors.get_mut(thread as usize) else { return };
        let times = actor.open.entry(row).or_insert(0);
        *times += 1;
        if *times > 1 {
            self.count(row, NONE);
            return;
        }
        self.settle(thread);
        let Some(actor) = self.actors.get_mut(thread as usize) else { return };
        let caller = actor.stack.iter().rev().find(|frame| !self.places.is_thread(frame.row));
        let caller = caller.map_or(NONE, |frame| frame.row);
        let frame = Frame { row, caller, is_others: false };
        actor.stack.push(frame);
        if self.places.is_object(row) {
            self.is_at(thread, row);
        }
        self.count(row, caller);
        self.open(thread, frame);
    }

    /// From now on the thread works on the row's behalf, too, until the row leaves the thread's stack. No call is
    /// counted.
    pub(super) fn adopt(&mut self, thread: u32, row: u32) {
        if self.is_open(thread, row) {
            return;
        }
        self.settle(thread);
        let Some(actor) = self.actors.get_mut(thread as usize) else { return };
        let caller = actor.stack.iter().rev().find(|frame| !self.places.is_thread(frame.row));
        let frame = Frame { row, caller: caller.map_or(NONE, |frame| frame.row), is_others: true };
        actor.stack.push(frame);
        actor.open.insert(row, 1);
        self.open(thread, frame);
    }

    /// The functions on the thread's stack, the outermost first.
    pub(super) fn functions(&self, thread: u32) -> Vec<u32> {
        let stack = self.actors.get(thread as usize).map_or(&[][..], |actor| &actor.stack);
        stack.iter().map(|frame| frame.row).filter(|row| *row < self.places.functions).collect()
    }

    /// Counts this many more calls of the row.
    pub(super) fn also(&mut self, row: u32, times: u64) {
        if let Some(calls) = self.calls.get_mut(row as usize) {
            *calls = calls.saturating_add(times);
        }
    }

    fn count(&mut self, row: u32, caller: u32) {
        if let Some(calls) = self.calls.get_mut(row as usize) {
            *calls += 1;
        }
        if caller != NONE {
            self.arcs.entry((caller, row)).or_default().calls += 1;
        }
    }

    fn open(&mut self, thread: u32, frame: Frame) {
        self.lie(thread, frame, Side::From);
    }

    fn close(&mut self, thread: u32, frame: Frame) {
        self.lie(thread, frame, Side::To);
    }

    /// Begins or ends counting the settled thread's time on the frame's behalf.
    fn lie(&mut self, thread: u32, frame: Frame, side: Side) {
        let Some(Actor { tally, .. }) = self.actors.get(thread as usize) else { return };
        if let Some(total) = self.totals.get_mut(frame.row as usize) {
            total.whole(tally, side);
        }
        if let Some(others) = self.others.get_mut(frame.row as usize).filter(|_| frame.is_others) {
            *others = side.by(*others, tally.normalized);
        }
        if frame.caller != NONE {
            let arc = self.arcs.entry((frame.caller, frame.row)).or_default();
            arc.normalized = side.by(arc.normalized, tally.normalized);
        }
    }

    /// Removes the innermost frame of the row from the thread's stack, if the row is there.
    pub(super) fn leave(&mut self, thread: u32, row: u32) {
        let Some(actor) = self.actors.get_mut(thread as usize) else { return };
        let Some(times) = actor.open.get_mut(&row) else { return };
        *times -= 1;
        if *times > 0 {
            return;
        }
        actor.open.remove(&row);
        let Some(place) = actor.stack.iter().rposition(|frame| frame.row == row) else { return };
        self.settle(thread);
        let Some(actor) = self.actors.get_mut(thread as usize) else { return };
        let frame = actor.stack.remove(place);
        if actor.object.row == row {
            let object = actor.stack.iter().rev().find(|frame| self.places.is_object(frame.row));
            let object = object.map_or(NONE, |frame| frame.row);
            self.is_at(thread, object);
        }
        self.close(thread, frame);
    }

    /// The created thread gets the creator's stack, except for `own`: functions that created threads call themselves.
    pub(super) fn inherit(&mut self, creator: u32, thread: u32, own: &FxHashSet<u32>) {
        let Some(parent) = self.actors.get(creator as usize) else { return };
        let inherited = |frame: &Frame| !self.places.is_object(frame.row) && !own.contains(&frame.row);
        let frames: Vec<Frame> = parent.stack.iter().copied().filter(inherited).collect();
        self.settle(thread);
        for frame in frames.iter().rev() {
            if self.is_open(thread, frame.row) {
                continue;
            }
            // The creator called the function under a lock, but the created thread does not hold that lock.
            let caller = if self.places.is_object(frame.caller) { NONE } else { frame.caller };
            let frame = Frame { caller, is_others: true, ..*frame };
            if let Some(actor) = self.actors.get_mut(thread as usize) {
                actor.stack.insert(0, frame);
                actor.open.insert(frame.row, 1);
            }
            self.open(thread, frame);
        }
    }

    /// Ends the run at `time` and returns its accounts.
    pub(super) fn finish(mut self, time: u64) -> Balance {
        self.now(time);
        for thread in 0..self.places.threads {
            self.does(thread, Phase::Off, NONE);
            self.settle(thread);
            self.is_at(thread, NONE);
            let Some(actor) = self.actors.get_mut(thread as usize) else { continue };
            close(&mut self.meters, actor.own, &actor.tally);
            // A thread's self time is all of its time.
            let all = Own { row: self.places.thread(thread), phases: [true; PHASES] };
            close(&mut self.meters, all, &actor.tally);
            for frame in std::mem::take(&mut actor.stack) {
                self.close(thread, frame);
            }
        }
        for queue in &mut self.queues {
            queue.pass(time);
        }
        let Account { places, clock, meters, totals, others, calls, queues, arcs, within, .. } = self;
        let crowded = clock.first_crowded();
        Balance {
            places,
            now: clock.now,
            levels: clock.levels(),
            meters: meters.iter().map(|sum| Meter::of(sum, crowded)).collect(),
            totals: totals.iter().map(|sum| Total::of(sum, crowded)).collect(),
            others,
            calls,
            queues,
            arcs,
            within: within.into_iter().map(|((object, own), time)| ((own, object), time)).collect(),
        }
    }
}

/// The row stops getting the thread's time: adds what the settled thread has in each phase of that time.
fn close(meters: &mut Vec<Sum>, own: Own, tally: &Tally) {
    for place in (0..PHASES).filter(|place| own.phases[*place]) {
        at(meters, own.row as usize).own(tally, place, Side::To);
    }
}

impl Waiting {
    fn pass(&mut self, now: u64) {
        *at(&mut self.lengths, self.count as usize) += now.saturating_sub(self.since);
        self.since = now;
    }
}
