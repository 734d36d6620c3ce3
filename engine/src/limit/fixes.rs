//! What a person can change, and what each change gains.

use super::divide::{Part, divided};
use super::holders::{self, Sums};
use super::owner::is_system_call;
use super::search::{Found, Search};
use super::stretch::Stretch;
use super::thread_samples::relative_error;
use super::{Kind, WORTH, without};
use crate::cpus::Cpus;
use crate::predict::{Assumptions, Scheduler};
use crate::program::names::GIL;
use crate::program::{FunctionRef, ObjectId, Operation, Program};
use crate::time::Ticks;
use crate::what_if::{Edit, edited, with_open};
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
/// A thread that is at work for this share of the time sets the pace, though it waits for work in between.
const AT_WORK: f64 = 0.5;
/// At least this many CPUs are busy then, on average.
const BUSY: f64 = 0.25;
/// Runs with other decisions that make the band of a change.
const RUNS: u32 = 2;

/// A change of a program.
#[derive(Clone, Debug, PartialEq, strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum Change {
    /// A lock becomes this many locks.
    SplitLock(ObjectId, u32),
    /// What this function computes while one of these locks is held is computed before it is taken.
    MoveOut(FunctionRef, Vec<ObjectId>),
    /// The function takes this share of its time.
    Faster(FunctionRef, f64),
    /// Half as many calls of this function of the C library, which asks the kernel for something.
    FewerCalls(FunctionRef),
    /// What one thread computes alone is divided among this many.
    Divide(Part, usize),
    /// Each thread finds these locks, an interpreter's own, free: at best that is what processes in place of threads gain.
    Processes(Vec<ObjectId>),
    /// This many CPUs.
    Cpus(Cpus),
    /// One more thread in a group of this many that do the same.
    #[strum(serialize = "one_more_thread")]
    OneMore(usize),
    /// Threads have equally much to do.
    Balance,
    /// No thread sleeps.
    NoSleeps,
    /// Threads that take turns work at the same time.
    NoTurns,
    /// No limit on the CPU time of its control groups.
    NoQuota,
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
    pub runs: (f64, f64),
    /// Between what the gain lies: also by what was recorded and by what the model leaves out, as `what-if` says it.
    pub band: (f64, f64),
    /// The same on the largest CPU count, if that is another one and the program is not too large to be run there, too.
    pub gain_at_largest: Option<f64>,
}

impl Change {
    /// Whether its gain is a bound: what is simulated is more than the change can give.
    pub fn is_at_best(&self) -> bool {
        matches!(self, Change::Processes(_) | Change::Divide(..) | Change::NoTurns)
    }

    /// Its name in JSON.
    pub fn name(&self) -> &'static str {
        self.into()
    }
}

impl Search {
    /// Changes to try on the first CPU count.
    pub fn changes(&self, found: &[Found]) -> Vec<Change> {
        let Some(first) = found.first().filter(|found| found.time_ns > 0.0) else { return Vec::new() };
        let is_idle = matches!(first.limit.kind, Kind::Idle { .. });
        match first.limit.kind {
            Kind::Idle { busy } if busy < BUSY || first.at_work < AT_WORK => return Vec::new(),
            Kind::Nothing | Kind::Deadlock { .. } | Kind::NotKnown { .. } | Kind::LocksNotRecorded { .. } => {
                return Vec::new();
            }
            _ => {}
        }
        let mut changes: Vec<Change> = Vec::new();
        let mut functions: Vec<FunctionRef> = Vec::new();
        // The lock that limits is worth all that can be done about it; others are not in the way yet.
        if matches!(first.limit.kind, Kind::Lock { .. })
            && let Some(locks) = Search::locks_found(first).next()
        {
            // An interpreter's own lock is neither split nor left earlier.
            if locks.iter().any(|lock| is_gil(self.object_name(*lock))) {
                changes.push(Change::Processes(locks.to_vec()));
            } else {
                functions.extend(self.of_lock(locks, &mut changes));
            }
        }
        if let (Kind::Serial { threads, .. }, Some(stretch)) = (&first.limit.kind, first.stretch) {
            functions.extend(self.of_stretch(stretch, *threads, first.limit.cpus, &mut changes));
        }
        for (change, _) in self.known(first).into_iter().filter(|_| !is_idle) {
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
        let sorted = sums.sorted();
        // Where most is computed in a library without names, another library or its symbols are what a person can get.
        let library =
            sorted.first().filter(|(function, ticks)| *ticks > sums.all() / 4 && self.is_library(*function));
        let library = library.map(|(function, _)| *function);
        functions.extend(library.into_iter().chain(sorted.into_iter().map(|(function, _)| function)));
        let mut seen: Vec<FunctionRef> = Vec::new();
        for function in functions {
            let is_changed = self.has_name(function) || library == Some(function);
            if !seen.contains(&function) && seen.len() < FUNCTIONS && is_changed {
                seen.push(function);
            }
        }
        changes.extend(seen.into_iter().map(|function| Change::Faster(function, FASTER)));
        changes.extend(self.system_call().map(Change::FewerCalls));
        changes.truncate(self.questions());
        changes
    }

    /// What can be done about a lock; the function that its holder runs.
    fn of_lock(&self, locks: &[ObjectId], changes: &mut Vec<Change>) -> Option<FunctionRef> {
        if let [lock] = locks {
            changes.push(Change::SplitLock(*lock, PARTS));
        }
        let under = holders::under(&self.program, &self.owners, locks).sorted();
        let all: u64 = under.iter().map(|(_, ticks)| ticks).sum();
        let (function, ticks) = *under.first()?;
        let share = ticks as f64 / all.max(1) as f64;
        let moves = WORTH_MOVING.contains(&share) && self.has_name(function);
        changes.extend(moves.then(|| Change::MoveOut(function, locks.to_vec())));
        (share >= WORTH_MOVING.start).then_some(function)
    }

    /// What can be done about what a thread computes alone; the function that most of it is.
    fn of_stretch(
        &self,
        stretch: Stretch,
        threads: usize,
        cpus: Cpus,
        changes: &mut Vec<Change>,
    ) -> Option<FunctionRef> {
        let (from, to) = (stretch.before, stretch.before.saturating_add(stretch.length));
        let mut sums = Sums::default();
        holders::of_thread(&self.program, &self.owners, stretch.thread, Some((from, to)), &mut sums);
        let most = sums.sorted().first().copied();
        let most = most.filter(|(function, ticks)| self.has_name(*function) && *ticks > sums.all() / 2);
        let function = most.map(|(function, _)| function);
        let among = count(cpus).unwrap_or(0).max(threads);
        if among > 1 {
            changes.push(Change::Divide(Part { thread: stretch.thread, from, to, function }, among));
        }
        function
    }

    /// The system call that takes most CPU time, if nobody can look up the code that makes it.
    fn system_call(&self) -> Option<FunctionRef> {
        let computed = self.program.compute_times().functions;
        let calls = (0..).zip(&self.program.functions).zip(computed).filter(|((number, function), _)| {
            let owner = self.owners.owner(FunctionRef(*number));
            is_system_call(function) && owner.is_some_and(|owner| !self.has_name(owner))
        });
        let most = calls.max_by_key(|(_, ticks)| *ticks).filter(|(_, ticks)| *ticks > Ticks(0));
        most.map(|((number, _), _)| FunctionRef(number))
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

    /// Whether it is the code of a library without names, which is one function, called after its file.
    fn is_library(&self, function: FunctionRef) -> bool {
        let function = self.program.functions.get(function.0 as usize);
        function.is_some_and(|function| function.name.starts_with('[') && function.name.contains(".so"))
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
            Change::Faster(own, _) | Change::FewerCalls(own) => function = name(own),
            Change::Divide(part, _) => function = part.function.as_ref().and_then(name),
            Change::Processes(locks) => lock = locks.first().and_then(object),
            _ => {}
        }
        let gain_of = |before: f64, after: f64| if before > 0.0 { 1.0 - after / before } else { 0.0 };
        let known = |found: &Found| {
            let known = self.known(found);
            known.iter().find(|(known, _)| known == change).map(|(_, ns)| *ns)
        };
        let function_name = function.map(|function| function.name.clone());
        let location = function.and_then(|function| function.location.clone());
        let recorded = match change {
            Change::Faster(own, _) | Change::FewerCalls(own) => relative_error(&self.samples, *own),
            _ => 0.0,
        };
        let is_ideal = Assumptions::of(&self.program, &self.model).scheduler == Scheduler::Ideal;
        let band = |gain: f64, runs| if is_ideal { runs } else { with_open(runs, gain, gain * recorded) };
        let fix = |gain: f64, runs, gain_at_largest| Fix {
            change: change.clone(),
            lock: lock.clone(),
            function: function_name.clone(),
            location: location.clone(),
            gain,
            runs,
            band: band(gain, runs),
            gain_at_largest,
        };
        if let Some(ns) = known(first) {
            let gain = gain_of(first.time_ns, ns);
            // For a program that only sleeps, that is no advice.
            let most = if matches!(change, Change::NoSleeps) { 0.95 } else { 1.0 };
            let largest = found.get(1);
            let there = largest.and_then(|largest| Some(gain_of(largest.time_ns, known(largest)?)));
            return (WORTH..most).contains(&gain).then(|| fix(gain, (gain, gain), there));
        }
        let after = self.after(change, cpus)?;
        let on = if let Change::Cpus(more) = change { *more } else { cpus };
        let plain = gain_of(first.time_ns, self.time_ns(&after, on, &self.model, 0)?);
        if plain < LEAST {
            return None;
        }
        let mut runs = (plain, plain);
        let mut gain_at_largest = None;
        if self.is_small() {
            for run in 1..=RUNS {
                // A run that ends in a deadlock which the recorded one did not have says nothing.
                let Some(before) = self.time_ns(&self.program, cpus, &self.model, run) else { continue };
                let Some(after) = self.time_ns(&after, on, &self.model, run) else { continue };
                let gain = gain_of(before, after);
                runs = (runs.0.min(gain), runs.1.max(gain));
            }
            if let Some(largest) = found.get(1)
                && !matches!(change, Change::Cpus(_))
            {
                let divided = matches!(change, Change::Divide(..));
                let there = if divided { self.after(change, largest.limit.cpus) } else { None };
                let there = there.as_ref().unwrap_or(&after);
                let ns = self.time_ns(there, largest.limit.cpus, &self.model, 0);
                gain_at_largest = ns.map(|ns| gain_of(largest.time_ns, ns));
            }
        }
        // A gain that another run of the same program does not have is chance.
        (runs.0 >= LEAST / 2.0).then(|| fix(plain, runs, gain_at_largest))
    }

    /// The program with this change, to be run on this many CPUs.
    fn after(&self, change: &Change, cpus: Cpus) -> Option<Program> {
        Some(match change {
            Change::SplitLock(lock, parts) => {
                edited(&self.program, &[Edit::SplitLock(*lock, *parts)]).ok()?
            }
            Change::MoveOut(function, locks) => self.moved_out(*function, locks),
            Change::Faster(function, factor) => self.scaled(*function, *factor)?,
            Change::FewerCalls(function) => {
                edited(&self.program, &[Edit::Scale(vec![*function], FASTER)]).ok()?
            }
            Change::Divide(part, among) => {
                // More threads than CPUs are no faster.
                let among = count(cpus).unwrap_or(*among).min(*among);
                divided(&self.program, &self.owners, part, 1.0 / among.max(1) as f64)
            }
            Change::Processes(locks) => {
                let mut program = self.program.clone();
                without::locks(&mut program, locks);
                program
            }
            Change::Cpus(_) => self.program.clone(),
            Change::OneMore(_) | Change::Balance | Change::NoSleeps | Change::NoTurns | Change::NoQuota => {
                return None;
            }
        })
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

fn count(cpus: Cpus) -> Option<usize> {
    match cpus {
        Cpus::Count(count) => Some(count.get() as usize),
        Cpus::Infinite => None,
    }
}

fn take(length: &mut Ticks, taken: &mut Option<(usize, u64)>) {
    if let Some((_, sum)) = taken {
        *sum = sum.saturating_add(length.0);
        length.0 = 0;
    }
}

/// An interpreter's own lock: known by its operations, or by the word of Python's that threads wait for.
fn is_gil(object: &str) -> bool {
    object.starts_with(GIL) || object.contains("_PyRuntime")
}
