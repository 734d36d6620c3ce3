//! What a person can change, and what each change gains.

use super::holders::{self, Sums};
use super::search::{Found, Search};
use super::{Kind, WORTH};
use crate::cpus::Cpus;
use crate::program::names::GIL;
use crate::program::{FunctionRef, ObjectId, Operation, Program};
use crate::time::Ticks;
use crate::what_if::{Edit, edited};
use rustc_hash::FxHashSet;

/// Changes shown.
pub(super) const SHOWN: usize = 3;
/// A change that gains less than this is not worth a line.
const LEAST: f64 = 0.02;
/// Into how many locks one is split.
const PARTS: u32 = 8;
/// What a function that is made faster takes of its time.
const FASTER: f64 = 0.5;
/// Functions tried.
const FUNCTIONS: usize = 3;
/// A holder's function is worth moving if it has this share of what is computed under the lock, and not all of it: what the lock
/// is for stays.
const WORTH_MOVING: std::ops::Range<f64> = 0.1..0.995;
/// Runs with other decisions that make the band of a change.
const RUNS: u32 = 2;

/// A change of a program.
#[derive(Clone, Debug, PartialEq)]
pub enum Change {
    /// A lock becomes this many locks.
    SplitLock(ObjectId, u32),
    /// What this function computes while one of these locks is held is computed before it is taken.
    MoveOut(FunctionRef, Vec<ObjectId>),
    /// The function takes this share of its time.
    Faster(FunctionRef, f64),
    /// This many CPUs.
    Cpus(Cpus),
    /// One more thread in a group of this many that do the same.
    OneMore(usize),
    /// Threads have equally much to do.
    Balance,
    /// No thread sleeps.
    NoSleeps,
}

/// A change and its gain.
#[derive(Clone, Debug, PartialEq)]
pub struct Fix {
    /// What to change.
    pub change: Change,
    /// The lock, if it is about one.
    pub lock: Option<String>,
    /// The function, if it is about one.
    pub function: Option<String>,
    /// Where it is, if that is known.
    pub location: Option<String>,
    /// The share of the predicted time that it takes off on the first CPU count.
    pub gain: f64,
    /// The smallest and the largest share in runs in which what is open is decided differently.
    pub band: (f64, f64),
    /// The same on the largest CPU count, if that is another one and the program is not too large to be run there, too.
    pub gain_at_largest: Option<f64>,
}

impl Change {
    /// Its name in JSON.
    pub fn name(&self) -> &'static str {
        match self {
            Change::SplitLock(..) => "split_lock",
            Change::MoveOut(..) => "move_out",
            Change::Faster(..) => "faster",
            Change::Cpus(_) => "cpus",
            Change::OneMore(_) => "one_more_thread",
            Change::Balance => "balance",
            Change::NoSleeps => "no_sleeps",
        }
    }
}

impl Search {
    /// Changes to try on the first CPU count.
    pub fn changes(&self, found: &[Found]) -> Vec<Change> {
        let Some(first) = found.first().filter(|found| found.time_ns > 0.0) else { return Vec::new() };
        if matches!(
            first.limit.kind,
            Kind::Idle { .. }
                | Kind::Nothing
                | Kind::Deadlock
                | Kind::NotKnown { .. }
                | Kind::LocksNotRecorded { .. }
        ) {
            return Vec::new();
        }
        let mut changes: Vec<Change> = Vec::new();
        let mut functions: Vec<FunctionRef> = Vec::new();
        // The lock that limits is worth all that can be done about it; others are not in the way yet.
        if matches!(first.limit.kind, Kind::Lock { .. })
            && let Some(locks) = Search::locks_found(first).next()
            // Of an interpreter's own lock a user can change nothing.
            && !locks.iter().any(|lock| self.object_name(*lock).starts_with(GIL))
        {
            if let [lock] = locks {
                changes.push(Change::SplitLock(*lock, PARTS));
            }
            let under = holders::under(&self.program, &self.owners, locks).sorted();
            let all: u64 = under.iter().map(|(_, ticks)| ticks).sum();
            if let Some((function, ticks)) = under.first() {
                let share = *ticks as f64 / all.max(1) as f64;
                let moves = WORTH_MOVING.contains(&share) && self.has_name(*function);
                changes.extend(moves.then(|| Change::MoveOut(*function, locks.to_vec())));
                functions.extend((share >= WORTH_MOVING.start).then_some(*function));
            }
        }
        for (change, _) in self.known(first) {
            // Two stages of a pipeline may both want a second thread.
            if !changes.contains(&change) {
                changes.push(change);
            }
        }
        if let Cpus::Count(count) = first.limit.cpus
            && let Some(more) = Cpus::count(count.get().saturating_mul(2))
        {
            let waits = matches!(first.limit.kind, Kind::Cpus { .. });
            changes.extend(waits.then_some(Change::Cpus(more)));
        }
        let mut sums = Sums::default();
        for group in self.groups() {
            for thread in &group.threads {
                holders::of_thread(&self.program, &self.owners, *thread, None, &mut sums);
            }
        }
        functions.extend(sums.sorted().into_iter().map(|(function, _)| function));
        let mut seen: Vec<FunctionRef> = Vec::new();
        for function in functions {
            if !seen.contains(&function) && seen.len() < FUNCTIONS && self.has_name(function) {
                seen.push(function);
            }
        }
        changes.extend(seen.into_iter().map(|function| Change::Faster(function, FASTER)));
        changes.truncate(self.questions());
        changes
    }

    fn object_name(&self, object: ObjectId) -> &str {
        self.program.objects.get(object.0 as usize).map_or("", String::as_str)
    }

    /// Whether it is a function that a user can look up: code without names is one function, called after its
    /// file.
    fn has_name(&self, function: FunctionRef) -> bool {
        let function = self.program.functions.get(function.0 as usize);
        function.is_some_and(|function| !function.name.starts_with('['))
    }

    /// What a change gains; `None`: too little, or it cannot be made.
    pub fn brings(&self, change: &Change, found: &[Found]) -> Option<Fix> {
        let first = found.first()?;
        let cpus = first.limit.cpus;
        let name = |function: &FunctionRef| self.program.functions.get(function.0 as usize);
        let (mut lock, mut function) = (None, None);
        let object = |lock: &ObjectId| self.program.objects.get(lock.0 as usize).cloned();
        match change {
            Change::SplitLock(one, _) => lock = object(one),
            Change::MoveOut(own, locks) => {
                function = name(own);
                lock = locks.first().and_then(object);
            }
            Change::Faster(own, _) => function = name(own),
            _ => {}
        }
        let gain = |before: f64, after: f64| if before > 0.0 { 1.0 - after / before } else { 0.0 };
        let known = |found: &Found| {
            let known = self.known(found);
            known.iter().find(|(known, _)| known == change).map(|(_, ns)| *ns)
        };
        let function_name = function.map(|function| function.name.clone());
        let location = function.and_then(|function| function.location.clone());
        let fix = |gain: f64, band, gain_at_largest| Fix {
            change: change.clone(),
            lock: lock.clone(),
            function: function_name.clone(),
            location: location.clone(),
            gain,
            band,
            gain_at_largest,
        };
        if let Some(ns) = known(first) {
            let gain = gain(first.time_ns, ns);
            // For a program that only sleeps, that is no advice.
            let most = if matches!(change, Change::NoSleeps) { 0.95 } else { 1.0 };
            return (WORTH..most).contains(&gain).then(|| fix(gain, (gain, gain), None));
        }
        let (after, on) = match change {
            Change::SplitLock(lock, parts) => {
                (edited(&self.program, &[Edit::SplitLock(*lock, *parts)]).ok()?, cpus)
            }
            Change::MoveOut(function, locks) => (self.moved_out(*function, locks), cpus),
            Change::Faster(function, factor) => (self.scaled(*function, *factor)?, cpus),
            Change::Cpus(more) => (self.program.clone(), *more),
            _ => return None,
        };
        let plain = gain(first.time_ns, self.time_ns(&after, on, &self.model, 0)?);
        if plain < LEAST {
            return None;
        }
        let mut band = (plain, plain);
        let mut gain_at_largest = None;
        if self.is_small() {
            for run in 1..=RUNS {
                let before = self.time_ns(&self.program, cpus, &self.model, run)?;
                let gain = gain(before, self.time_ns(&after, on, &self.model, run)?);
                band = (band.0.min(gain), band.1.max(gain));
            }
            if let Some(largest) = found.get(1)
                && !matches!(change, Change::Cpus(_))
            {
                let ns = self.time_ns(&after, largest.limit.cpus, &self.model, 0);
                gain_at_largest = ns.map(|ns| gain(largest.time_ns, ns));
            }
        }
        // A gain that another run of the same program does not have is chance.
        (band.0 >= LEAST / 2.0).then(|| fix(plain, band, gain_at_largest))
    }

    /// The function and all standard ones that count for it take a share of their time.
    fn scaled(&self, function: FunctionRef, factor: f64) -> Option<Program> {
        edited(&self.program, &[Edit::Scale(self.owners.owned_by(function), factor)]).ok()
    }

    /// What a function computes under these locks is computed before they are taken.
    fn moved_out(&self, function: FunctionRef, locks: &[ObjectId]) -> Program {
        let locks: FxHashSet<ObjectId> = locks.iter().copied().collect();
        let mut program = self.program.clone();
        for thread in &mut program.threads {
            if thread.background.is_some() {
                continue;
            }
            let operations = std::mem::take(&mut thread.operations);
            let mut moved: Vec<Operation> = Vec::with_capacity(operations.len() + 1);
            let mut stack: Vec<FunctionRef> = Vec::new();
            // Where the outermost of the locks was taken.
            let mut taken: Option<(usize, u64)> = None;
            let mut held = 0u32;
            for operation in operations {
                match operation {
                    Operation::Call(function) => stack.push(function),
                    Operation::Return => drop(stack.pop()),
                    _ => {}
                }
                let of =
                    |top: Option<FunctionRef>| top.and_then(|top| self.owners.owner(top)) == Some(function);
                let mut operation = operation;
                match &mut operation {
                    Operation::Exec(length) if of(stack.last().copied()) => take(length, &mut taken),
                    Operation::ExecIn(own, length) if of(Some(*own)) => take(length, &mut taken),
                    _ => {}
                }
                match holders::taking(&operation) {
                    Some((object, true)) if locks.contains(&object) => {
                        held += 1;
                        if held == 1 {
                            taken = Some((moved.len(), 0));
                            moved.push(Operation::ExecIn(function, Ticks(0)));
                        }
                    }
                    Some((object, false)) if locks.contains(&object) => {
                        held = held.saturating_sub(1);
                        if held == 0
                            && let Some((place, sum)) = taken.take()
                            && let Some(Operation::ExecIn(_, length)) = moved.get_mut(place)
                        {
                            length.0 = sum;
                        }
                    }
                    _ => {}
                }
                moved.push(operation);
            }
            if let Some((place, sum)) = taken
                && let Some(Operation::ExecIn(_, length)) = moved.get_mut(place)
            {
                length.0 = sum;
            }
            thread.operations = moved;
            // Places of operations are no longer what they were.
            thread.moves.clear();
        }
        program
    }
}

fn take(length: &mut Ticks, taken: &mut Option<(usize, u64)>) {
    if let Some((_, sum)) = taken {
        *sum = sum.saturating_add(length.0);
        length.0 = 0;
    }
}
