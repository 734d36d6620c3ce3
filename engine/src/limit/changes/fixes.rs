//! Changes that a person can make, and the gain of each.

use crate::cpus::Cpus;
use crate::event::SupportSubject;
use crate::experiment::{Edit, is_sync, synced_under, with_open};
use crate::limit::causes::stretch::Stretch;
use crate::limit::search::{Found, Search};
use crate::limit::threads::holders::{self, Sums};
use crate::limit::threads::thread_samples::relative_error;
use crate::limit::{LimitKind, WORTH};
use crate::predict::{Assumptions, Scheduler};
use crate::program::{Function, FunctionRef, ObjectId, SupportWork};
use crate::time::Ticks;

/// Number of changes shown.
pub(in crate::limit) const SHOWN: usize = 3;
/// A change that gains less than this is not worth a line.
const LEAST: f64 = 0.02;
/// Number of locks into which one lock is split.
const PARTS: u32 = 8;
/// A function that is made faster takes this share of its time.
const FASTER: f64 = 0.5;
/// Number of functions tried.
const FUNCTIONS: usize = 3;
/// A holder's function is worth moving out of a lock if its share of all computing under the lock is in this range.
/// With all of it, nothing would be left for the lock to protect.
const WORTH_MOVING: std::ops::Range<f64> = 0.1..0.995;
/// Threads that hold a lock sync files for at least this part of the time.
const SYNCED: f64 = 0.25;
/// A thread that works for this share of the time sets the pace, although it waits for work in between.
const AT_WORK: f64 = 0.5;
/// A program that waits for work gets advice only if at least this many CPUs are busy, on average.
const BUSY: f64 = 0.25;

/// Kernel or runtime work below this share of the CPU time is worth advice only if it is the limit or may gain more.
const MUCH: f64 = 0.25;

/// A change of the program, and its gain.
#[derive(Clone, Debug, PartialEq)]
pub struct Fix {
    /// The change.
    pub edit: Edit,
    /// The lock that the change is about, if any.
    pub lock: Option<String>,
    /// The function that the change is about, if any.
    pub function: Option<String>,
    /// The function's source location, if known.
    pub location: Option<String>,
    /// The share of the predicted time that the change saves on the first CPU count.
    pub gain: f64,
    /// The smallest and the largest share in runs with other decisions of what the model leaves open.
    pub runs: (f64, f64),
    /// The range of the gain: `runs`, widened by the recording's error and by what the model lacks, as `what-if` prints it.
    pub band: (f64, f64),
    /// The gain on the largest CPU count; `None` if that is the first CPU count, or the program is too large to run
    /// there, too.
    pub gain_at_largest: Option<f64>,
}

/// The parallel region that others wait for, awake: a function that a compiler made for OpenMP.
fn region(kind: &LimitKind) -> Option<&String> {
    let LimitKind::SpunWaits { functions, .. } = kind else { return None };
    let is_region = |name: &str| ["._omp_fn.", ".omp_outlined"].iter().any(|part| name.contains(part));
    functions.first().filter(|function| is_region(function))
}

impl Search {
    /// Changes to try on the first CPU count.
    pub fn edits(&self, found: &[Found]) -> Vec<Edit> {
        let Some(first) = found.first().filter(|found| found.time_ns > 0.0) else { return Vec::new() };
        let is_idle = matches!(first.limit.kind, LimitKind::Idle { .. });
        match first.limit.kind {
            LimitKind::Idle { busy } if busy < BUSY || first.at_work < AT_WORK => return Vec::new(),
            LimitKind::LocksNotRecorded { .. } => return Vec::new(),
            LimitKind::GoroutinesWait(_) => return first.of_goroutines().into_iter().collect(),
            ref kind if kind.is_not_simulated() => return Vec::new(),
            _ => {}
        }
        let mut edits: Vec<Edit> = Vec::new();
        let mut functions: Vec<FunctionRef> = Vec::new();
        // All changes to the lock that limits are tried; other locks are not in the way yet.
        if matches!(first.limit.kind, LimitKind::Lock { .. })
            && let Some(locks) = Search::locks_found(first).next()
        {
            // A user can neither split an interpreter's lock nor move work out of it.
            if locks.iter().any(|lock| self.program().meaning(*lock).is_interpreter_lock()) {
                edits.push(Edit::Processes(locks.to_vec()));
            } else {
                edits.extend(self.group_commit(locks, first));
                functions.extend(self.of_lock(locks, &mut edits));
            }
        }
        if let LimitKind::Permits { .. } = first.limit.kind
            && let Some((more, _)) =
                first.without.iter().find(|(edit, _)| matches!(edit, Edit::Permits { .. }))
        {
            edits.extend(Search::twice_the_permits(more));
            edits.push(more.clone());
        }
        if let (LimitKind::Serial { threads, times: 1, .. }, Some(stretch)) =
            (&first.limit.kind, first.stretch)
        {
            functions.extend(self.of_stretch(stretch, *threads, first.limit.cpus, &mut edits));
        }
        let is_busy_thread = matches!(first.limit.kind, LimitKind::BusyThread { .. });
        if let Some(busy) = first.busy_thread.filter(|_| is_busy_thread) {
            functions.extend(self.of_stretch(busy, 0, first.limit.cpus, &mut edits));
        }
        if !is_idle {
            edits.extend(self.known(first).into_iter().map(|(edit, _)| edit));
        }
        edits.extend(self.fewer_syncs(first));
        if let Cpus::Count(count) = first.limit.cpus
            && let Some(more) = Cpus::count(count.get().saturating_mul(2))
        {
            let waits = matches!(first.limit.kind, LimitKind::Cpus { .. });
            edits.extend(first.of_goroutines().filter(|_| waits));
            edits.extend(waits.then_some(Edit::Cpus(more)));
        }
        // Such a function mostly waits for the cache line, which takes as long if the function gets faster.
        if matches!(first.limit.kind, LimitKind::CacheLine { .. }) {
            return edits;
        }
        let mut sums = Sums::default();
        for group in self.groups() {
            for thread in &group.threads {
                holders::of_thread(self.program(), self.owners(), *thread, None, &mut sums);
            }
        }
        let sorted = sums.sorted();
        // If a library without names computes most, the user can get another library or its symbols.
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
        edits.extend(seen.into_iter().map(|function| Edit::Scale(self.owners().owned_by(function), FASTER)));
        edits.extend(self.system_call().map(|function| Edit::FewerCalls(function, FASTER)));
        edits.truncate(self.questions());
        edits
    }

    /// Changes that were already tried and that a user can make, with their predicted times. Of changes that are
    /// described by the same sentence, only one is returned.
    fn known(&self, found: &Found) -> Vec<(Edit, f64)> {
        let mut known: Vec<(Edit, f64)> = Vec::new();
        let polls = found.without.iter().any(|(edit, _)| matches!(edit, Edit::NoPolling(_)));
        for (edit, ns) in &found.without {
            let is_advice = match edit {
                // Sleeping with a permit is what the permit is for, and in a pool more threads sleep at the same time.
                Edit::NoSleeps => {
                    !matches!(found.limit.kind, LimitKind::Permits { .. } | LimitKind::Sleepers { .. })
                        && !polls
                }
                Edit::NoPolling(_) | Edit::MoreSleepers { .. } => {
                    !matches!(found.limit.kind, LimitKind::Permits { .. })
                }
                Edit::Overlap { .. } => matches!(found.limit.kind, LimitKind::Serial { .. }),
                Edit::NoQuota | Edit::WakeOne(_) | Edit::DivideEvenly(_) | Edit::EvenRounds { .. } => true,
                // The ledger has one row for each group.
                Edit::FewerThreads { .. } => found.bounds_of(edit).is_some(),
                Edit::MoreThreads { .. } => !matches!(
                    found.limit.kind,
                    LimitKind::TooManyThreads { .. } | LimitKind::SmallTasks { .. }
                ),
                // Other cache lines are not in the way yet, and a known one is more precise advice than the cost.
                Edit::OwnLines { .. } => matches!(found.limit.kind, LimitKind::CacheLine { .. }),
                Edit::WritersFirst { .. } => true,
                // Such regions can be joined; of other threads it is not known why they wait awake.
                Edit::NoSpunWaits => region(&found.limit.kind).is_some(),
                Edit::LargerTasks { .. } => matches!(found.limit.kind, LimitKind::SmallTasks { .. }),
                Edit::CostAsOn(_) => !matches!(found.limit.kind, LimitKind::CacheLine { .. }),
                // The kernel's work of waiting is advice only if threads wait for each other for no other reason.
                Edit::LessSupportWork { work, subject } => {
                    let is_limit = matches!(found.limit.kind, LimitKind::SupportWork { .. });
                    let share = self.recorded.support.get(*work).map_or(0.0, SupportWork::share);
                    let may_be_more = || 1.0 - ns / found.time_ns > found.limit.gain();
                    is_limit || *subject != SupportSubject::Waiting && (share >= MUCH || may_be_more())
                }
                // If a lock lets only one thread work at a time, the lock is what the user can change.
                Edit::NoTurns => matches!(found.limit.kind, LimitKind::Turns { .. }),
                _ => false,
            };
            // Two stages of a pipeline may both want a second thread: one sentence reports both.
            if is_advice && !known.iter().any(|(known, _)| known.is_worded_like(edit)) {
                known.push((edit.clone(), *ns));
            }
        }
        known
    }

    /// The change that syncs files less often, if threads wait for file syncs.
    fn fewer_syncs(&self, found: &Found) -> Option<Edit> {
        let waits = found.without.iter().any(|(edit, _)| {
            matches!(edit, Edit::FreeDevices(devices) if devices.iter().any(|device| is_sync(self.object_name(*device))))
        });
        waits.then_some(Edit::NoSyncs)
    }

    /// The change to one file sync for all threads that wait for the lock, on average, if the lock's holders sync files
    /// much of the time.
    fn group_commit(&self, locks: &[ObjectId], found: &Found) -> Option<Edit> {
        let [lock] = *locks else { return None };
        let used = found.locks.iter().find(|used| used.lock == self.object_name(lock))?;
        let waiting = (used.waited_ns / found.time_ns).round();
        let synced = synced_under(self.program(), lock).as_ns_f64() / found.time_ns;
        let is_much = waiting >= 1.0 && synced >= SYNCED * used.held_share;
        is_much.then_some(Edit::GroupCommit(lock, waiting.min(f64::from(u16::MAX)) as u32 + 1))
    }

    /// Adds changes to a lock; returns the function that its holders compute most.
    fn of_lock(&self, locks: &[ObjectId], edits: &mut Vec<Edit>) -> Option<FunctionRef> {
        if let [lock] = locks {
            edits.push(Edit::SplitLock(*lock, PARTS));
        }
        let under = holders::under(self.program(), self.owners(), locks).sorted();
        let all: u64 = under.iter().map(|(_, ticks)| ticks).sum();
        let (function, ticks) = *under.first()?;
        let share = ticks as f64 / all.max(1) as f64;
        let moves = WORTH_MOVING.contains(&share) && self.has_name(function);
        edits.extend(moves.then(|| Edit::MoveOut(function, locks.to_vec())));
        (share >= WORTH_MOVING.start).then_some(function)
    }

    /// Adds changes to a stretch that a thread computes alone; returns the function that most of the stretch is.
    fn of_stretch(
        &self,
        stretch: Stretch,
        threads: usize,
        cpus: Cpus,
        edits: &mut Vec<Edit>,
    ) -> Option<FunctionRef> {
        let (from, to) = (stretch.before, stretch.before.saturating_add(stretch.length));
        let mut sums = Sums::default();
        holders::of_thread(self.program(), self.owners(), stretch.thread, Some((from, to)), &mut sums);
        let most = sums.sorted().first().copied();
        let most = most.filter(|(function, ticks)| self.has_name(*function) && *ticks > sums.all() / 2);
        let function = most.map(|(function, _)| function);
        let among = cpus.or(0).max(threads);
        if among > 1 {
            edits.push(Edit::Divide(stretch.part(function), among));
        }
        function
    }

    /// Of the system calls whose calling code has no names, the one that takes most CPU time.
    fn system_call(&self) -> Option<FunctionRef> {
        let computed = self.program().compute_times().functions;
        let calls = (0..).zip(&self.program().functions).zip(computed).filter(|((number, function), _)| {
            let owner = self.owners().owner(FunctionRef(*number));
            function.is_system_call() && owner.is_some_and(|owner| !self.has_name(owner))
        });
        let most = calls.max_by_key(|(_, ticks)| *ticks).filter(|(_, ticks)| *ticks > Ticks(0));
        most.map(|((number, _), _)| FunctionRef(number))
    }

    pub(in crate::limit) fn object_name(&self, object: ObjectId) -> &str {
        self.program().objects.get(object.0 as usize).map_or("", String::as_str)
    }

    fn has_name(&self, function: FunctionRef) -> bool {
        self.program().functions.get(function.0 as usize).is_some_and(Function::has_name)
    }

    fn is_library(&self, function: FunctionRef) -> bool {
        self.program().functions.get(function.0 as usize).is_some_and(Function::is_unnamed_library)
    }

    /// The gain of a change; `None`: the gain is too small, or the change cannot be made.
    pub fn fix(&self, edit: &Edit, found: &[Found]) -> Option<Fix> {
        let first = found.first()?;
        let cpus = first.limit.cpus;
        if matches!(edit, Edit::Goroutines(_)) {
            let bounds = first.bounds_of(edit)?;
            return Some(self.fix_of(edit, f64::midpoint(bounds.0, bounds.1), bounds, None, cpus));
        }
        let gain_in = |known: &[(Edit, f64)], time_ns: f64| {
            known.iter().find(|(known, _)| known.is_same(edit)).map(|(_, ns)| 1.0 - ns / time_ns)
        };
        if let Some(gain) = gain_in(&self.known(first), first.time_ns) {
            // If only bounds of the gain are known, the ledger's row has the smallest value.
            if matches!(edit, Edit::FewerThreads { .. } | Edit::MoreThreads { .. })
                && let Some(bounds) = first.bounds_of(edit).filter(|(least, most)| least < most)
            {
                let middle = f64::midpoint(bounds.0, bounds.1);
                return (bounds.1 >= WORTH).then(|| self.fix_of(edit, middle, bounds, None, cpus));
            }
            // "Do not sleep" is no advice for a program that only sleeps.
            let most = if *edit == Edit::NoSleeps { 0.95 } else { 1.0 };
            let there = found.get(1).and_then(|there| gain_in(&there.without, there.time_ns));
            let is_worth = (WORTH..most).contains(&gain);
            return is_worth.then(|| {
                let fix = self.fix_of(edit, gain, (gain, gain), there, cpus);
                let region = region(&first.limit.kind).filter(|_| *edit == Edit::NoSpunWaits);
                Fix { function: region.cloned().or(fix.function.clone()), ..fix }
            });
        }
        let trial = self.trials.with(vec![edit.on(cpus)]);
        let gain = trial.gain(cpus, 0)?;
        if gain < LEAST {
            return None;
        }
        let (mut runs, mut there) = ((gain, gain), None);
        if self.is_small() {
            runs = trial.gains(cpus, gain);
            if let Some(largest) = found.get(1)
                && !matches!(edit, Edit::Cpus(_))
            {
                let cpus = largest.limit.cpus;
                there = match edit {
                    Edit::Divide(..) => self.trials.with(vec![edit.on(cpus)]).gain(cpus, 0),
                    _ => trial.gain(cpus, 0),
                };
            }
        }
        // A gain that another run of the same program lacks is chance.
        if runs.0 < LEAST / 2.0 {
            return None;
        }
        // Threads on more CPUs meet in the kernel more often.
        if matches!(edit, Edit::Cpus(_)) && self.kernel_work_in_the_way() >= WORTH {
            runs.0 *= 1.0 - self.kernel_work_in_the_way();
        }
        Some(self.fix_of(edit, gain, runs, there, cpus))
    }

    /// The fix, in the program's words.
    fn fix_of(
        &self,
        edit: &Edit,
        gain: f64,
        runs: (f64, f64),
        gain_at_largest: Option<f64>,
        cpus: Cpus,
    ) -> Fix {
        let runs = (self.least_beside_others(edit, runs.0, cpus), runs.1);
        let (lock, function) = match edit {
            Edit::SplitLock(lock, _) | Edit::GroupCommit(lock, _) => (Some(*lock), None),
            Edit::MoveOut(function, locks) => (locks.first().copied(), Some(*function)),
            Edit::Processes(locks) => (locks.first().copied(), None),
            Edit::Permits { semaphore, .. } => (Some(*semaphore), None),
            Edit::WritersFirst { lock, .. } => (Some(*lock), None),
            Edit::Scale(functions, _) => (None, functions.first().copied()),
            Edit::FewerCalls(function, _) => (None, Some(*function)),
            Edit::Divide(part, _) => (None, part.function),
            Edit::Overlap { function, .. } => (None, Some(*function)),
            Edit::CostAsOn(_) => (None, self.grown_most()),
            _ => (None, None),
        };
        let of_goroutines = match edit {
            Edit::Goroutines(change) => self.about_goroutines(*change),
            _ => (None, None),
        };
        let recorded = match (edit, function) {
            (Edit::Scale(..) | Edit::FewerCalls(..), Some(own)) => relative_error(&self.samples, own),
            _ => 0.0,
        };
        let function =
            function.and_then(|function: FunctionRef| self.program().functions.get(function.0 as usize));
        let is_ideal = Assumptions::of(self.program(), self.trials.model()).scheduler == Scheduler::Ideal;
        Fix {
            edit: edit.clone(),
            lock: lock.map(|lock| self.object_name(lock).to_owned()).or(of_goroutines.0),
            function: function.map(|function| function.name.clone()).or(of_goroutines.1),
            location: function.and_then(|function| function.location.clone()),
            gain,
            runs,
            band: if is_ideal { runs } else { with_open(runs, gain, gain * recorded) },
            gain_at_largest,
        }
    }
}
