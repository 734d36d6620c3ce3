//! Edits and locks in the program's own words: names of functions, threads and objects.

use crate::experiment::{Edit, Polling, most_to_do};
use crate::limit::LimitKind;
use crate::limit::search::Search;
use crate::limit::threads::holders::{self, Sums};
use crate::limit::threads::thread_samples::apart;
use crate::limit::threads::uses::LockUse;
use crate::limit::watched_run::WatchedRun;
use crate::program::{ObjectId, ObjectMeaning, Operation, RecordedObject, RecordedWait, SharedLine, taking};
use crate::schedule::RunOutcome;
use crate::time::Ticks;
use rustc_hash::FxHashSet;

/// Number of functions reported that compute while a lock is held.
const UNDER: usize = 8;
/// For a lock held for a smaller share of the time, no holder's function is reported: samples are some milliseconds apart, and
/// do not show what is computed in such short sections.
const HELD: f64 = 0.02;
/// A function with a smaller share of all computing under a lock is not reported as what the lock's holder runs.
const HOLDS: f64 = 0.1;
/// The tasks of a crew are of one function if it is at least this part of their computing.
const MOSTLY: f64 = 0.5;

impl Search {
    /// The object that more than half of all waits are for. Waits that are replayed as recorded count, too.
    pub(in crate::limit) fn most_awaited(&self, base: &RunOutcome) -> Option<ObjectId> {
        let operations = self.program().threads.iter().flat_map(|thread| &thread.operations);
        let awaits = operations.filter(|operation| matches!(operation, Operation::Await(_))).count() as u64;
        let all = base.objects.iter().fold(awaits, |sum, used| sum.saturating_add(used.waits));
        let (object, used) = (0u32..).zip(&base.objects).max_by_key(|(_, used)| used.waits)?;
        (used.waits.saturating_mul(2) > all).then_some(ObjectId(object))
    }

    fn of_devices(&self, devices: &[ObjectId], base: &RunOutcome) -> LimitKind {
        let device = devices.first().copied().unwrap_or_default();
        // If records are missing, it is unknown what threads wait for.
        if self.program().meaning(device) == ObjectMeaning::Unknown {
            let used = base.objects.get(device.0 as usize).map_or(0, |used| used.blocked);
            let all = base.length.0.saturating_mul(base.threads.len() as u64).max(1);
            return LimitKind::NotKnown { missing: used as f64 / all as f64 };
        }
        let name = self.object_name(device);
        let of = self.recorded.waits.iter().find(|wait| wait.name.as_str() == name);
        let of = of.and_then(RecordedWait::mostly_of).filter(|of| !name.ends_with(of)).map(str::to_owned);
        LimitKind::Device { device: with_others(name, devices.len().saturating_sub(1)), of }
    }

    fn of_permits(&self, semaphore: ObjectId, permits: u32, run: &WatchedRun) -> LimitKind {
        let of = self.permits.iter().find(|of| of.semaphore == semaphore);
        let waited = run.base.objects.get(semaphore.0 as usize).map_or(0, |used| used.blocked);
        LimitKind::Permits {
            semaphore: self.object_name(semaphore).to_owned(),
            permits,
            threads: of.map_or(0, |of| of.users as usize),
            waiting: run.share(waited),
        }
    }

    /// The function in which threads sleep most often.
    pub(in crate::limit) fn sleeps_in(&self) -> Option<String> {
        let sleep = self.recorded.waits.iter().find(|wait| wait.is_for_time());
        sleep.and_then(|wait| wait.sleepers.first()).map(|share| share.name.clone())
    }

    fn of_polling(&self, polling: &Polling) -> LimitKind {
        LimitKind::Polling {
            threads: polling.threads.len(),
            every_ns: polling.every.as_ns_f64(),
            longest_ns: polling.grows().then(|| polling.between.1.as_ns_f64()),
            function: self.sleeps_in(),
        }
    }

    /// Threads that take turns, or processes.
    fn of_turns(&self, run: &WatchedRun) -> LimitKind {
        let base = &run.base;
        let worth = base.length.0 / 100;
        let computing = self.program().threads.iter().zip(&base.threads);
        let computing = computing.filter(|(_, used)| used.busy > worth);
        let mut processes: Vec<Option<&str>> = Vec::new();
        processes.extend(computing.map(|(thread, _)| thread.process.as_deref()));
        let all = processes.len();
        processes.sort_unstable();
        processes.dedup();
        if let Some(peers) = self.peers_among(run.stretch).filter(|_| run.turns.is_none()) {
            let (threads, waits) = (peers.threads.len(), self.peers_wait_in());
            return LimitKind::Turns { threads, processes: false, changes: 0, waits };
        }
        let (threads, changes) = run.turns.map_or((0, 0), |turns| (turns.threads, turns.changes));
        LimitKind::Turns { threads, processes: all > 1 && processes.len() == all, changes, waits: None }
    }

    /// The kind of limit that the edit removes, in the program's words.
    pub(in crate::limit) fn kind(&self, edit: &Edit, run: &WatchedRun) -> LimitKind {
        let base = &run.base;
        let function = |threads: &[usize]| {
            let mut sums = Sums::default();
            for thread in threads {
                holders::of_thread(self.program(), self.owners(), *thread, None, &mut sums);
            }
            sums.first(self.program()).map(|part| part.function)
        };
        let thread_name = |thread: usize| {
            self.program().threads.get(thread).map(|thread| thread.name.clone()).unwrap_or_default()
        };
        match edit {
            Edit::FreeDevices(devices) => self.of_devices(devices, base),
            Edit::LargerTasks { threads, wakings, task_ns } => {
                let (wakings, task_ns) = (*wakings, *task_ns);
                LimitKind::SmallTasks {
                    threads: threads.len(),
                    function: function(threads),
                    wakings,
                    task_ns,
                }
            }
            Edit::NoSleeps => LimitKind::Timers { function: self.sleeps_in() },
            Edit::NoPolling(polling) => self.of_polling(polling),
            Edit::NoSpunWaits => self.of_spun_waits(run),
            Edit::NoSpinning => LimitKind::Spinning,
            Edit::FreeHandOver => {
                let object = self.most_awaited(base).filter(|object| !self.is_idle_device(*object));
                LimitKind::HandOver { object: object.map(|object| self.object_name(object).to_owned()) }
            }
            Edit::NoQuota => LimitKind::Quota { hundredths: self.quota().unwrap_or(0) },
            Edit::Cpus(_) => {
                let wanting = base.threads.iter().map(|used| (used.busy + used.ready) as f64).sum::<f64>();
                LimitKind::Cpus { wanting: wanting / base.length.0 as f64, goroutines: false }
            }
            Edit::DivideEvenly(alike) => {
                let thread = most_to_do(self.program(), alike);
                // Such threads may wait for their turn, whatever each of them has to do.
                let are_peers = thread.is_some_and(|thread| self.peers_of(thread).is_some());
                let waits = if are_peers { self.peers_wait_in() } else { None };
                let function = thread.and_then(|thread| function(&[thread]));
                LimitKind::Imbalance { function, waits, rounds: 0 }
            }
            Edit::MoreThreads { threads, .. } => {
                let apart = apart(&self.samples, threads);
                let apart = apart.and_then(|function| self.program().functions.get(function.0 as usize));
                let function = apart.map(|function| function.name.clone()).or_else(|| function(threads));
                match &threads[..] {
                    [thread] => LimitKind::Stage { thread: thread_name(*thread), function },
                    threads => too_few(threads, function, base),
                }
            }
            Edit::MoreSleepers { threads, .. } => self.of_sleepers(threads, function(threads), base),
            Edit::FewerThreads { threads, kept } => {
                LimitKind::TooManyThreads { threads: threads.len(), then: *kept, function: function(threads) }
            }
            Edit::NoTurns => self.of_turns(run),
            Edit::Divide(part, _) if self.busy_thread(run).is_some_and(|busy| busy.part(None) == *part) => {
                LimitKind::BusyThread {
                    thread: thread_name(part.thread),
                    function: function(&[part.thread]),
                    busy: run.share(part.to),
                }
            }
            Edit::Divide(part, _) => {
                let mut sums = Sums::default();
                let range = Some((part.from, part.to));
                holders::of_thread(self.program(), self.owners(), part.thread, range, &mut sums);
                let function = sums.first(self.program()).map(|part| part.function);
                serial(thread_name(part.thread), function, (part.to - part.from, 1), base)
            }
            Edit::Overlap { thread, times, function } => {
                let function = self.program().functions.get(function.0 as usize);
                let length = run.again.as_ref().map_or(0, |again| again.length);
                let function = function.map(|function| function.name.clone());
                serial(thread_name(*thread), function, (length, *times), base)
            }
            Edit::FreeLocks(locks) => self.lock_kind(locks, base),
            _ => self.kind_as_recorded(edit, run),
        }
    }

    fn of_rounds(&self, crew: &[usize], rounds: u64) -> LimitKind {
        let mut sums = Sums::default();
        for thread in crew {
            holders::of_thread(self.program(), self.owners(), *thread, None, &mut sums);
        }
        // In a pool with all kinds of tasks, no function says which of them are long.
        let most = sums.first(self.program()).filter(|part| part.share >= MOSTLY);
        LimitKind::Imbalance { function: most.map(|part| part.function), waits: None, rounds }
    }

    /// The kind of limit for edits whose gains follow from the recording.
    fn kind_as_recorded(&self, edit: &Edit, run: &WatchedRun) -> LimitKind {
        match edit {
            Edit::Goroutines(change) => self.of_goroutine_change(*change),
            Edit::EvenRounds { threads, times } => self.of_rounds(threads, *times),
            Edit::WakeOne(object) => self.recorded.objects.get(*object).map_or(LimitKind::Nothing, woken),
            Edit::WritersFirst { lock, thread } => self.of_starved_writer(*lock, *thread, run),
            Edit::OwnLines { line, .. } => {
                self.recorded.lines.get(*line).map_or(LimitKind::Nothing, cache_line)
            }
            Edit::CostAsOn(_) => self.of_costs(),
            Edit::Permits { semaphore, now, .. } => self.of_permits(*semaphore, *now, run),
            Edit::LessSupportWork { work, .. } => self.of_support_work(*work),
            // The search makes no candidates of other edits.
            _ => LimitKind::Work { busy: 0.0, hidden: self.hidden },
        }
    }

    /// The kind of limit for one lock, or for several locks that were first used in one place.
    fn lock_kind(&self, locks: &[ObjectId], base: &RunOutcome) -> LimitKind {
        let name = |object: ObjectId| self.object_name(object).to_owned();
        let all: FxHashSet<ObjectId> = locks.iter().copied().collect();
        let takers = self.program().threads.iter().filter(|thread| {
            let mut taken = thread.operations.iter().filter_map(taking);
            taken.any(|(object, takes)| takes && all.contains(&object))
        });
        let waited = locks.iter().filter_map(|lock| base.objects.get(lock.0 as usize));
        let waited = waited.fold(0u64, |sum, used| sum.saturating_add(used.blocked + used.spun));
        // A replayed lock has no simulated waits: the recorded ones count.
        let waited = match waited {
            0 => {
                let names: FxHashSet<String> = locks.iter().copied().map(name).collect();
                let objects = self.recorded.objects.iter();
                let recorded = objects.filter(|object| names.contains(&object.name));
                recorded.fold(0u64, |sum, object| sum.saturating_add(Ticks::from_ns(object.wait_ns).0))
            }
            waited => waited,
        };
        let holder = holders::under(self.program(), self.owners(), locks).first(self.program());
        let holder = holder.filter(|part| part.share >= HOLDS);
        LimitKind::Lock {
            lock: locks.first().copied().map(name).unwrap_or_default(),
            locks: locks.len(),
            waiting: waited as f64 / base.length.0 as f64,
            threads: takers.count(),
            holder,
        }
    }

    /// The locks that threads wait for, the longest waits first.
    pub(in crate::limit) fn lock_uses(&self, base: &RunOutcome) -> Vec<LockUse> {
        let worth = base.length.0 / 100;
        let locks = self.locks(base, worth).into_iter().filter_map(|(edit, _)| {
            let Edit::FreeLocks(locks) = edit else { return None };
            let used = || locks.iter().filter_map(|lock| base.objects.get(lock.0 as usize));
            let first = locks.first()?;
            let name = self.program().objects.get(first.0 as usize).cloned()?;
            let held = used().map(|used| used.held).max().unwrap_or(0);
            let replayed = self.recorded.objects.iter().find(|object| object.name == name);
            let waited = used().fold(0u64, |sum, used| sum.saturating_add(used.blocked + used.spun));
            let as_recorded = waited == 0 && replayed.is_some();
            let (waits, waited_ns) = match (waited, replayed) {
                (0, Some(object)) => (object.waits, object.wait_ns as f64),
                _ => (used().map(|used| used.waits).sum(), Ticks(waited).as_ns_f64()),
            };
            let held_share = held as f64 / base.length.0.max(1) as f64;
            let mut under =
                holders::under(self.program(), self.owners(), &locks).parts(self.program(), UNDER);
            if held_share < HELD || under.first().is_some_and(|part| part.share < HOLDS) {
                under.clear();
            }
            Some(LockUse { lock: name, locks: locks.len(), held_share, as_recorded, waits, waited_ns, under })
        });
        locks.collect()
    }
}

/// The device's name, and how many other devices there are.
fn with_others(name: &str, others: usize) -> String {
    match others {
        0 => name.to_owned(),
        1 => format!("{name} and another device"),
        more => format!("{name} and {more} other devices"),
    }
}

/// One or more stretches that a thread computes alone: their length in ticks, and number.
fn serial(
    thread: String,
    function: Option<String>,
    (length, times): (u64, u64),
    base: &RunOutcome,
) -> LimitKind {
    let worth = base.length.0 / 100;
    let threads = base.threads.iter().filter(|used| used.busy > worth).count();
    LimitKind::Serial { thread, function, length_ns: Ticks(length).as_ns_f64(), times, threads }
}

/// Threads of which there are too few.
fn too_few(threads: &[usize], function: Option<String>, base: &RunOutcome) -> LimitKind {
    let busy = threads.iter().filter_map(|thread| base.threads.get(*thread));
    let busy = busy.map(|used| (used.busy + used.ready) as f64).sum::<f64>();
    let all = base.length.0 as f64 * threads.len() as f64;
    LimitKind::Threads { threads: threads.len(), function, busy: busy / all }
}

fn cache_line(line: &SharedLine) -> LimitKind {
    let is_known = !line.variables.is_empty();
    LimitKind::CacheLine {
        line: if is_known { line.variables.join(", ") } else { line.address.clone() },
        function: line.function.clone(),
        threads: usize::try_from(line.threads).unwrap_or(usize::MAX),
        readers: usize::try_from(line.readers).unwrap_or(usize::MAX),
        is_false: line.is_false,
    }
}

fn woken(object: &RecordedObject) -> LimitKind {
    LimitKind::WokenForNothing {
        object: object.name.clone(),
        wakings: object.waits,
        for_nothing: object.for_nothing,
    }
}
