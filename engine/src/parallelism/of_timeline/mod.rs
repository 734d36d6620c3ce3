//! Feeds the accounts from the timeline of the measured run. Processors are those that run the program's threads. A thread
//! that waits for a lock while it runs, or repeatedly polls, spins. The work of probes has its own row.

mod behalf;
mod cursor;
mod sampled_time;

use super::account::{Account, NONE, Places};
use super::balance::Balance;
use super::clock::Phase;
use super::spread::RowErrors;
use crate::attribution::{Attribution, Grouping};
use crate::event::{CallKind, SyncObject};
use crate::program::{Measured, Program};
use crate::time::{Ticks, Timestamp};
use crate::timeline::{Birth, NO_STACK, StackSample, State, Timeline, WaitReason, Wakeup};
use behalf::{Stacks, handed_over, is_ancestor, own_rows};
use cursor::{Change, Cursor};
use probe_abi::SampleReason;
use rustc_hash::{FxHashMap, FxHashSet};
use sampled_time::{Key, Parts};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;

/// A thread's state beyond what the accounts keep.
#[derive(Clone, Debug, Default)]
struct RunState {
    state: Option<State>,
    /// Objects that the thread has arrived at and must wait for, the innermost last.
    waits: Vec<u32>,
    /// The object for which the thread sleeps outside of recorded operations.
    sleeps_for: Option<u32>,
    spins: bool,
    in_probe: bool,
    /// The function in which a sample shows the thread going to sleep.
    asleep: Option<u32>,
    /// Rows on whose behalf the thread works. `inherited` are its creator's functions; `works_for` are its waker's
    /// until the thread waits for work again; `behalf` is the innermost one of these rows.
    inherited: Vec<u32>,
    works_for: Vec<u32>,
    behalf: Option<u32>,
    /// Index of the thread that woke this one to work.
    submitter: Option<usize>,
    /// Whether a row on whose behalf the thread works is known.
    has_creator: bool,
    /// Its last part of functions' time.
    part: Option<(Key, u32)>,
}

/// The accounts of a measured run, divided by samples.
pub(super) struct Accounted {
    pub(super) balance: Balance,
    /// For each row: errors of its times.
    pub(super) errors: Vec<RowErrors>,
    /// Number of samples that count.
    pub(super) samples: u64,
    /// Number of threads for which it is unknown on whose behalf they work.
    pub(super) orphans: u32,
}

/// Longest chain of submitters that is followed.
const MOST_SUBMITTERS: usize = 64;

struct Feed<'a> {
    timeline: &'a Timeline,
    program: &'a Program,
    measured: &'a Measured,
    attribution: &'a Attribution,
    account: Account,
    parts: Parts,
    now: Vec<RunState>,
    /// Functions on sampled stacks of all threads but the first.
    own: FxHashSet<u32>,
    /// Futex words, by process, that pass work on.
    handed_over: FxHashSet<(u32, u64)>,
    /// For each thread: the rows that all samples of its wake-ups have in common, computed at first use.
    always_waking: FxHashMap<usize, Vec<u32>>,
    /// The row of recording's own time.
    recording: u32,
    /// The present time, as in the recording.
    time_ns: u64,
}

/// The accounts of the measured run.
pub(super) fn account(timeline: &Timeline, program: &Program, measured: &Measured) -> Accounted {
    let attribution = Attribution::keys_only(program, Grouping::Function);
    let functions = program.functions.len() as u32;
    let places = Places {
        functions: functions + 1,
        objects: (program.objects.len() + crate::program::words(program).count()) as u32,
        threads: program.threads.len() as u32,
    };
    let mut feed = Feed {
        timeline,
        program,
        measured,
        attribution: &attribution,
        account: Account::new(places, None),
        parts: Parts::new(program),
        now: vec![RunState::default(); timeline.threads.len()],
        own: own_rows(timeline, program, &attribution.keys),
        handed_over: handed_over(timeline),
        always_waking: FxHashMap::default(),
        recording: functions,
        time_ns: 0,
    };
    let start = timeline.began().0;
    feed.run(start);
    let end = Ticks::from_ns(timeline.end.0.saturating_sub(start)).0;
    let orphans = feed.orphans();
    let Feed { account, parts, .. } = feed;
    let mut balance = account.finish(end);
    let errors = parts.spread(&attribution.keys, &mut balance);
    Accounted { balance, errors, samples: parts.samples, orphans }
}

impl Feed<'_> {
    fn run(&mut self, start: u64) {
        let measured = self.measured;
        let cursor = |(index, thread)| {
            measured.threads.get(index).copied().flatten()?;
            let turns = measured.turns.get(index).map_or(&[][..], Vec::as_slice);
            let spins = measured.spins.get(index).map_or(&[][..], Vec::as_slice);
            Some(Cursor::new(thread, turns, spins))
        };
        let mut cursors: Vec<Option<Cursor<'_>>> =
            self.timeline.threads.iter().enumerate().map(cursor).collect();
        // Time and thread in one number, which is compared without an unpredictable branch.
        let place = |time: u64, index: usize| Reverse(u128::from(time) << 64 | index as u128);
        let next = |(index, cursor): (usize, &Option<Cursor<'_>>)| {
            Some(place(cursor.as_ref().and_then(Cursor::next_time)?, index))
        };
        let mut queue: BinaryHeap<Reverse<u128>> = cursors.iter().enumerate().filter_map(next).collect();
        while let Some(mut first) = queue.peek_mut() {
            let (time, index) = ((first.0 >> 64) as u64, first.0 as usize);
            let cursor = cursors.get_mut(index).and_then(Option::as_mut);
            let change = cursor.and_then(|cursor| {
                let change = cursor.advance();
                if let Some(next) = cursor.next_time() {
                    *first = place(next, index);
                    return change;
                }
                PeekMut::pop(first);
                change
            });
            self.time_ns = time;
            self.account.now(Ticks::from_ns(time.saturating_sub(start)).0);
            if let Some(change) = change {
                self.change(index, change);
            }
        }
    }

    fn thread(&self, index: usize) -> u32 {
        self.measured.threads.get(index).copied().flatten().unwrap_or(NONE)
    }

    fn change(&mut self, index: usize, change: Change) {
        let thread = self.thread(index);
        let Some(now) = self.now.get_mut(index) else { return };
        match change {
            Change::Sample(seen) => return self.seen(index, thread, seen),
            Change::State(state) => return self.state(index, thread, state),
            Change::Base(number) => {
                let base = self.timeline.threads.get(index).and_then(|thread| thread.base_stacks.get(number));
                for id in base.into_iter().flat_map(|base| base.functions.iter().rev()) {
                    self.call(thread, *id);
                }
            }
            Change::Enter(function) => self.call(thread, function),
            Change::Leave => self.account.returns(thread),
            Change::Create(child) => return self.create(index, thread, child),
            Change::Comes(object, times) => {
                now.waits.push(object);
                let row = self.account.places.object(object);
                self.account.enter(thread, row);
                self.account.also(row, u64::from(times.saturating_sub(1)));
            }
            Change::Gets(object) => {
                if let Some(place) = now.waits.iter().rposition(|waited| *waited == object) {
                    now.waits.remove(place);
                }
            }
            Change::Gives(object) => self.account.leave(thread, self.account.places.object(object)),
            Change::Spins(spins) => {
                now.spins = spins;
                // A spinning thread gets its next work without a wake-up.
                if spins && now.waits.is_empty() {
                    self.stop_working_for(index, thread);
                    self.leave_returned(index, thread);
                }
            }
            Change::Probe(begins) => now.in_probe = begins,
            Change::Wakes(wakeup) => return self.wakes(index, wakeup),
            Change::Nothing => return,
            Change::Ends => now.state = None,
        }
        self.update(index, thread);
    }

    fn call(&mut self, thread: u32, function: crate::event::FunctionId) {
        // A function that the program does not know gets a frame, too, so that returns match.
        let row = self.measured.function(function).unwrap_or(self.account.places.outside());
        self.account.call(thread, row);
    }

    fn state(&mut self, index: usize, thread: u32, state: State) {
        let timeline = self.timeline;
        let of = timeline.threads.get(index);
        let Some((now, of)) = self.now.get_mut(index).zip(of) else { return };
        let slept_for = now.sleeps_for.take();
        let wait = match state {
            State::Blocked(wait) => of.waits.get(wait as usize),
            _ => None,
        };
        if wait.is_some() && !is_for_lock(timeline, &now.waits) {
            self.stop_working_for(index, thread);
        }
        let Some(now) = self.now.get_mut(index) else { return };
        if let (Some(wait), true) = (wait, now.waits.is_empty()) {
            now.sleeps_for = self.measured.awaited(of.pid, wait);
        }
        if matches!(state, State::Running { .. }) {
            now.asleep = None;
        }
        now.state = Some(state);
        let sleeps_for = now.sleeps_for;
        if slept_for != sleeps_for {
            let row = |object| self.account.places.object(object);
            let (before, after) = (slept_for.map(row), sleeps_for.map(row));
            before.into_iter().for_each(|row| self.account.leave(thread, row));
            after.into_iter().for_each(|row| self.account.enter(thread, row));
        }
        self.update(index, thread);
    }

    fn create(&mut self, index: usize, thread: u32, child: u32) {
        let birth = self.timeline.threads.get(child as usize).map(|child| child.birth);
        if birth != Some(Birth::By(index as u32)) {
            return;
        }
        let number = self.thread(child as usize);
        self.account.inherit(thread, number, &self.own);
        let behalf = self.now.get(index).and_then(|now| now.behalf);
        let rows = self.creating_now(index);
        let adopted = self.adopt(child as usize, rows);
        let inherited = self.account.functions(number);
        if let Some(now) = self.now.get_mut(child as usize) {
            now.inherited = inherited;
            let top = Some(self.account.top(thread)).filter(|top| *top != self.account.places.outside());
            now.behalf = adopted.last().copied().or(top).or(behalf);
            now.has_creator = now.behalf.is_some();
        }
    }

    fn stacks(&self) -> Stacks<'_> {
        Stacks { program: self.program, keys: &self.attribution.keys }
    }

    /// Rows that samples show open on the stack of a thread that creates another one now.
    fn creating_now(&self, index: usize) -> Vec<u32> {
        let Some(thread) = self.timeline.threads.get(index) else { return Vec::new() };
        let (stacks, time) = (self.stacks(), Timestamp(self.time_ns));
        stacks.waking_at(thread, time).unwrap_or_else(|| stacks.creating_at(thread, time))
    }

    /// Rows that samples show open on the stack of a thread that wakes another one now.
    fn waking_now(&mut self, index: usize) -> Vec<u32> {
        let Some(thread) = self.timeline.threads.get(index) else { return Vec::new() };
        let stacks = Stacks { program: self.program, keys: &self.attribution.keys };
        let seen = stacks.waking_at(thread, Timestamp(self.time_ns));
        let always =
            || self.always_waking.entry(index).or_insert_with(|| stacks.always_waking(thread)).clone();
        seen.unwrap_or_else(always)
    }

    /// The thread works on behalf of these rows from now on. Returns the rows that were not already on the thread's own
    /// stack.
    fn adopt(&mut self, index: usize, rows: Vec<u32>) -> Vec<u32> {
        let thread = self.thread(index);
        let is_new = |row: &u32| !self.own.contains(row) && !self.account.is_open(thread, *row);
        let others: Vec<u32> = rows.into_iter().filter(is_new).collect();
        for row in &others {
            self.account.adopt(thread, *row);
        }
        others
    }

    /// A thread wakes another one. If the woken thread waited for work, it works for its waker from now on.
    fn wakes(&mut self, index: usize, wakeup: u32) {
        let timeline = self.timeline;
        let Some(wakeup) = timeline.wakeups.get(wakeup as usize).filter(|wakeup| wakeup.ended.is_some())
        else {
            return;
        };
        let woken = wakeup.wakee as usize;
        let thread = self.thread(woken);
        if thread == NONE || self.is_answered(woken, index) || !self.waits_for_work(woken, wakeup) {
            return;
        }
        let mut rows = self.account.functions(self.thread(index));
        rows.extend(self.waking_now(index));
        rows.retain(|row| !self.own.contains(row));
        self.stop_working_for(woken, thread);
        let Some(behalf) = rows.last().copied() else { return };
        let inherited = self.now.get_mut(woken).map(|now| std::mem::take(&mut now.inherited));
        let (stay, go): (Vec<u32>, Vec<u32>) =
            inherited.into_iter().flatten().partition(|row| rows.contains(row));
        for row in go.into_iter().rev() {
            self.account.leave(thread, row);
        }
        let adopted = self.adopt(woken, rows);
        if let Some(now) = self.now.get_mut(woken) {
            (now.inherited, now.works_for) = (stay, adopted);
            (now.behalf, now.submitter) = (Some(behalf), Some(index));
            now.has_creator = true;
        }
    }

    /// Whether the wake-up is only an answer: the woken thread created its waker, or woke it to work.
    fn is_answered(&self, woken: usize, waker: usize) -> bool {
        let submitter = |of: &usize| self.now.get(*of).and_then(|now| now.submitter);
        let chain = std::iter::successors(Some(waker), submitter).take(MOST_SUBMITTERS);
        is_ancestor(self.timeline, woken, waker) || chain.skip(1).any(|submitter| submitter == woken)
    }

    /// Whether a thread waits for work: for a condition or a semaphore, or for input from a descriptor. A futex without
    /// recorded operations counts if it passes work on, or if the waking function is known to do so.
    fn waits_for_work(&self, woken: usize, wakeup: &Wakeup) -> bool {
        let Some(now) = self.now.get(woken) else { return false };
        if !now.waits.is_empty() {
            let object = now.waits.last().and_then(|object| self.timeline.locks.get(*object as usize));
            return object
                .is_some_and(|object| matches!(object.kind, SyncObject::Condition | SyncObject::Semaphore));
        }
        let thread = self.timeline.threads.get(woken);
        let wait = thread.zip(wakeup.ended).and_then(|(thread, wait)| thread.waits.get(wait as usize));
        let Some(wait) = wait else { return false };
        match wait.kind() {
            CallKind::Futex => {
                let word = thread.zip(match wait.reason {
                    WaitReason::Futex(futex) => Some(futex.word),
                    _ => None,
                });
                let waker = self.timeline.threads.get(wakeup.waker as usize);
                word.is_some_and(|(thread, word)| self.handed_over.contains(&(thread.pid, word)))
                    || waker.is_some_and(|waker| self.stacks().submits(waker, wakeup.time))
            }
            CallKind::Read | CallKind::Receive | CallKind::Completion => true,
            _ => wait.is_for_anything(),
        }
    }

    fn stop_working_for(&mut self, index: usize, thread: u32) {
        let Some(now) = self.now.get_mut(index).filter(|now| now.submitter.is_some()) else { return };
        (now.behalf, now.submitter) = (now.inherited.last().copied(), None);
        for row in std::mem::take(&mut now.works_for).into_iter().rev() {
            self.account.leave(thread, row);
        }
    }

    /// A thread that waits for other work stops working on behalf of functions from which its creator has returned.
    fn leave_returned(&mut self, index: usize, thread: u32) {
        let Some(Birth::By(creator)) = self.timeline.threads.get(index).map(|thread| thread.birth) else {
            return;
        };
        let creator = self.thread(creator as usize);
        let Some(now) = self.now.get_mut(index) else { return };
        let has_returned = |row: &u32| {
            let function = self.program.functions.get(*row as usize);
            // Returns are known only for functions with probes.
            function.is_some_and(|function| !function.sampled) && !self.account.is_open(creator, *row)
        };
        let (go, stay): (Vec<u32>, Vec<u32>) =
            std::mem::take(&mut now.inherited).into_iter().partition(has_returned);
        now.behalf = stay.last().copied();
        now.inherited = stay;
        for row in go.into_iter().rev() {
            self.account.leave(thread, row);
        }
    }

    /// Number of threads, except the first one, for which it is unknown on whose behalf they work.
    fn orphans(&self) -> u32 {
        let lived = self.now.iter().zip(&self.measured.threads).filter(|(_, number)| number.is_some());
        let orphans = lived.skip(1).filter(|(now, _)| !now.has_creator).count();
        u32::try_from(orphans).unwrap_or(u32::MAX)
    }

    fn seen(&mut self, index: usize, thread: u32, seen: StackSample) {
        if seen.stack == NO_STACK || seen.reason == SampleReason::Wake {
            return;
        }
        let account = &self.account;
        let is_open = |row| account.is_open(thread, row);
        let Some(view) = self.parts.view(self.program, &self.attribution.keys, seen.stack, is_open) else {
            return;
        };
        let Some(now) = self.now.get_mut(index) else { return };
        if seen.reason == SampleReason::Block {
            now.asleep = Some(view);
            return;
        }
        let is_running = matches!(now.state, Some(State::Running { .. }));
        if !is_running || now.in_probe || now.spins || !now.waits.is_empty() {
            return;
        }
        let part = self.part(index, self.key(thread, index));
        self.parts.add(part, self.account.clock.level(), view);
    }

    fn key(&self, thread: u32, index: usize) -> Key {
        let now = self.now.get(index);
        let is_running = now.is_some_and(|now| matches!(now.state, Some(State::Running { .. })));
        let asleep = now.and_then(|now| now.asleep).filter(|_| !is_running);
        Key {
            thread,
            top: self.account.top(thread),
            object: self.account.object(thread),
            asleep: asleep.unwrap_or(NONE),
            behalf: now.and_then(|now| now.behalf).unwrap_or(NONE),
        }
    }

    fn part(&mut self, index: usize, key: Key) -> u32 {
        let last = self.now.get(index).and_then(|now| now.part);
        if let Some((_, part)) = last.filter(|(last, _)| *last == key) {
            return part;
        }
        let part = self.parts.number(key);
        if let Some(now) = self.now.get_mut(index) {
            now.part = Some((key, part));
        }
        part
    }

    /// Reports the thread's present activity to the accounts.
    fn update(&mut self, index: usize, thread: u32) {
        let key = self.key(thread, index);
        let Some(now) = self.now.get(index) else { return };
        let in_probe = now.in_probe;
        let waits_for = now.waits.last().copied().or(now.sleeps_for).unwrap_or(NONE);
        let phase = match now.state {
            Some(State::Running { .. }) if now.spins || !now.waits.is_empty() => Phase::Spinning,
            Some(State::Running { .. }) => Phase::Busy,
            Some(State::Runnable) => Phase::Ready,
            Some(State::Blocked(_)) => Phase::Blocked,
            Some(State::Unknown(_)) | None => Phase::Off,
        };
        let waits = matches!(phase, Phase::Blocked | Phase::Spinning);
        let own = if in_probe && phase == Phase::Busy {
            self.recording
        } else if self.program.samples.is_empty() {
            key.top
        } else {
            self.account.places.part(self.part(index, key))
        };
        self.account.is_in(thread, own);
        self.account.does(thread, phase, if waits { waits_for } else { NONE });
    }
}

/// Whether the innermost of the objects in `waits` is a lock.
fn is_for_lock(timeline: &Timeline, waits: &[u32]) -> bool {
    let lock = waits.last().and_then(|object| timeline.locks.get(*object as usize));
    lock.is_some_and(|lock| {
        matches!(lock.kind, SyncObject::Mutex | SyncObject::RwLock | SyncObject::SpinLock)
    })
}
