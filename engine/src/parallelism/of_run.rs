//! Feeds the accounts from the predicted run: on ideally shared processors for a program written by hand, on the scheduler's
//! model for a recording. All commands predict the time from the same run ([`crate::predict::Timing`]).

use super::account::{Account, NONE, Places};
use super::clock::Phase;
use crate::attribution::{Attribution, NO_STRATUM};
use crate::program::{ObjectId, Operation, Program};
use crate::schedule::{Observer, SimulatedState, Why};
use rustc_hash::FxHashSet;

/// Reports a simulated program's events to the accounts.
pub(super) struct Feed<'a> {
    pub(super) account: Account,
    attribution: &'a Attribution,
    /// For each thread: its present operation, and the operation's number.
    last: Vec<Option<(u32, Operation)>>,
    /// Functions on sampled stacks of created threads: for these, samples and not inheritance say whose time it is.
    own: FxHashSet<u32>,
}

impl<'a> Feed<'a> {
    /// A feed before the run begins. `hundredths`: hundredths of a processor to share ideally.
    pub(super) fn new(program: &Program, attribution: &'a Attribution, hundredths: Option<u64>) -> Feed<'a> {
        let account = Account::new(places(program), hundredths);
        let created: FxHashSet<u32> = program.created().map(|thread| thread.0).collect();
        let samples = &program.samples;
        let stacks = created.iter().flat_map(|thread| samples.of_thread(*thread as usize));
        let stacks: FxHashSet<u32> = stacks.map(|sample| sample.stack).collect();
        let own = stacks.iter().flat_map(|stack| samples.stack(*stack)).map(|(_, place)| place.function.0);
        Feed { account, attribution, last: vec![None; program.threads.len()], own: own.collect() }
    }

    fn object(&self, object: ObjectId) -> u32 {
        self.account.places.object(object.0)
    }

    /// Ends the thread's present operation.
    fn done(&mut self, thread: u32) {
        let last = self.last.get_mut(thread as usize).and_then(Option::take);
        match last.map(|(_, operation)| operation) {
            Some(Operation::ExecIn(..)) => self.account.returns(thread),
            Some(
                Operation::Wait(object)
                | Operation::SemWait(object)
                | Operation::Barrier(object, _)
                | Operation::Once(object, _)
                | Operation::Io(object, _),
            ) => self.account.leave(thread, self.object(object)),
            Some(Operation::CondWait(object, mutex)) => {
                self.account.leave(thread, self.object(object));
                let mutex = self.object(mutex);
                if !self.account.is_open(thread, mutex) {
                    self.account.enter(thread, mutex);
                }
            }
            _ => {}
        }
    }

    fn begins(&mut self, thread: u32, number: u32, operation: Operation) {
        match operation {
            Operation::Call(function) | Operation::ExecIn(function, _) => {
                self.account.call(thread, function.0)
            }
            Operation::Return => self.account.returns(thread),
            Operation::Create(child) => self.account.inherit(thread, child.0, &self.own),
            Operation::Lock(object)
            | Operation::ReadLock(object)
            | Operation::WriteLock(object)
            | Operation::SpinLock(object)
            | Operation::Held(object, _)
            | Operation::Wait(object)
            | Operation::SemWait(object)
            | Operation::Barrier(object, _)
            | Operation::Once(object, _)
            | Operation::Io(object, _) => self.account.enter(thread, self.object(object)),
            Operation::Unlock(object)
            | Operation::ReadWriteUnlock(object)
            | Operation::SpinUnlock(object)
            | Operation::Freed(object, _) => self.account.leave(thread, self.object(object)),
            Operation::CondWait(object, mutex) => {
                self.account.leave(thread, self.object(mutex));
                self.account.enter(thread, self.object(object));
            }
            _ => {}
        }
        let slot = match operation {
            Operation::Exec(_) | Operation::ExecIn(..) | Operation::Once(..) => {
                self.attribution.strata.slot(thread as usize, number as usize)
            }
            _ => NO_STRATUM,
        };
        let own = match slot {
            NO_STRATUM => self.account.top(thread),
            slot => self.account.places.part(slot),
        };
        self.account.is_in(thread, own);
    }
}

impl Observer for Feed<'_> {
    fn now(&mut self, time: u64) {
        self.account.now(time);
    }

    fn does(&mut self, thread: u32, doing: SimulatedState) {
        let (phase, waits_for) = match doing {
            SimulatedState::Nothing => (Phase::Off, NONE),
            SimulatedState::Busy => (Phase::Busy, NONE),
            SimulatedState::Spinning(object) => (Phase::Spinning, object.0),
            SimulatedState::Ready => (Phase::Ready, NONE),
            SimulatedState::Blocked(Why::Object(object)) => (Phase::Blocked, object.0),
            SimulatedState::Blocked(_) => (Phase::Blocked, NONE),
        };
        // The condition was signalled, and the thread now waits for the mutex.
        if let Some(&Some((_, Operation::CondWait(condition, mutex)))) = self.last.get(thread as usize)
            && waits_for == mutex.0
            && self.account.is_open(thread, self.object(condition))
        {
            self.account.leave(thread, self.object(condition));
            self.account.enter(thread, self.object(mutex));
        }
        self.account.does(thread, phase, waits_for);
    }

    fn comes_to(&mut self, thread: u32, number: u32, operation: Option<Operation>) {
        if self.last.get(thread as usize).is_some_and(|last| last.is_some_and(|last| last.0 == number)) {
            return;
        }
        self.done(thread);
        let Some(operation) = operation else { return };
        if let Some(last) = self.last.get_mut(thread as usize) {
            *last = Some((number, operation));
        }
        self.begins(thread, number, operation);
    }
}

/// The rows of a program.
pub(super) fn places(program: &Program) -> Places {
    let count = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
    Places {
        functions: count(program.functions.len()),
        objects: count(program.objects.len()),
        threads: count(program.threads.len()),
    }
}
