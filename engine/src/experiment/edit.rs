//! All changes of a program, for `what-if`, FIX and the search for what limits.

use super::divide::ComputePart;
use super::polling::Polling;
use crate::cpus::Cpus;
use crate::event::SupportSubject;
use crate::program::{FunctionRef, ObjectId, quoted};
use std::fmt;

/// A change. Its `strum` name is the name of FIX in JSON.
#[derive(Clone, Debug, PartialEq, strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum Edit {
    /// The self time of these functions is multiplied by this factor; 0 means that they take no time.
    #[strum(serialize = "faster")]
    Scale(Vec<FunctionRef>, f64),
    /// Only this share of the calls of a C library function that calls the kernel is made; each remaining call takes as
    /// long as before.
    FewerCalls(FunctionRef, f64),
    /// The lock is split into this number of locks. Each acquisition takes one of them, drawn at random.
    SplitLock(ObjectId, u32),
    /// Computing of the function under one of these locks moves before the acquisition of the lock.
    MoveOut(FunctionRef, Vec<ObjectId>),
    /// One of this number of threads that wait for the lock syncs a file under the lock for all of them.
    GroupCommit(ObjectId, u32),
    /// Every thread finds these locks free.
    FreeLocks(Vec<ObjectId>),
    /// Every thread finds these locks, which belong to an interpreter, free. That is the largest gain of processes in
    /// place of threads.
    Processes(Vec<ObjectId>),
    /// A part of one thread's computing is divided among this many threads.
    Divide(ComputePart, usize),
    /// More threads like these are started: their computing is divided among all of them, except under a lock.
    #[strum(serialize = "one_more_thread")]
    MoreThreads {
        /// Indices of the threads in the program.
        threads: Vec<usize>,
        /// Number of threads to add.
        more: usize,
        /// The locks under which nothing is divided; `None`: any lock.
        under: Option<Vec<ObjectId>>,
    },
    /// More threads like these, which mostly sleep, are started. Their sleeping is divided among all of them, except
    /// under a lock or with a permit. Computing stays as it is.
    #[strum(serialize = "more_sleepers")]
    MoreSleepers {
        /// Indices of the threads in the program.
        threads: Vec<usize>,
        /// Number of threads to add.
        more: usize,
    },
    /// Fewer threads: some of these do the work of all.
    #[strum(serialize = "fewer_threads")]
    FewerThreads {
        /// Indices of the threads in the program.
        threads: Vec<usize>,
        /// Number of threads that remain.
        kept: usize,
    },
    /// Computing is divided evenly among threads: between barriers, among threads that one thread creates and joins, and in
    /// these groups of threads that do the same.
    #[strum(serialize = "balance")]
    DivideEvenly(Vec<Vec<usize>>),
    /// A semaphore starts with another number of permits.
    #[strum(serialize = "more_permits")]
    Permits {
        /// The semaphore.
        semaphore: ObjectId,
        /// Permits before the change.
        now: u32,
        /// Number of permits after the change.
        then: u32,
    },
    /// Waiting for these devices takes no time.
    FreeDevices(Vec<ObjectId>),
    /// Syncing files takes no time: an upper bound on the gain of fewer syncs.
    #[strum(serialize = "fewer_syncs")]
    NoSyncs,
    /// Waiting for any device takes no time.
    FreeIo,
    /// No thread sleeps or waits for a timer.
    NoSleeps,
    /// These threads sleep and then poll for work; now they find work at once. That is an upper bound on the gain of
    /// waking them instead.
    NoPolling(Polling),
    /// A thread that waits for a spin lock yields its CPU.
    NoSpinning,
    /// A thread that busy-waits for another thread continues at once.
    NoSpunWaits,
    /// Threads that take turns work at the same time.
    NoTurns,
    /// Threads that share one cache line get a line each.
    OwnLines {
        /// Index of the line in [`crate::program::Recorded::lines`].
        line: usize,
        /// Whether each thread uses its own words of the line (false sharing).
        is_false: bool,
    },
    /// All functions take the CPU time that they need on this number of CPUs, as runs of the command show it.
    #[strum(serialize = "share_less")]
    CostAsOn(u32),
    /// The kernel or the runtime does none of this support work.
    LessSupportWork {
        /// Its index in [`crate::program::Recorded::support`].
        work: usize,
        /// Its subject.
        subject: SupportSubject,
    },
    /// Where all waiting threads are woken and all but one find nothing to do, only one is woken. The number is the
    /// index of the object in [`crate::program::Recorded::objects`].
    WakeOne(usize),
    /// Threads that are woken for each small task get more of them at a time.
    LargerTasks {
        /// Indices of the threads that are woken.
        threads: Vec<usize>,
        /// How often they are woken.
        wakings: u64,
        /// Their CPU time from one wake-up to the next, nanoseconds.
        task_ns: u64,
    },
    /// A read-write lock's writers go before readers that come later.
    WritersFirst {
        /// The lock.
        lock: ObjectId,
        /// Index of the thread that waits longest to write.
        thread: usize,
    },
    /// What a thread computes alone again and again overlaps with the work of threads that wait for it.
    Overlap {
        /// Index of the thread in the program.
        thread: usize,
        /// How often it computes alone.
        times: u64,
        /// The function that it computes then.
        function: FunctionRef,
    },
    /// All threads of a crew have something to do until the end of each round of work.
    EvenRounds {
        /// Indices of the crew's threads.
        threads: Vec<usize>,
        /// Number of rounds.
        times: u64,
    },
    /// Goroutines wait less for each other.
    Goroutines(GoroutineChange),
    /// Waking threads and putting them on CPUs takes no time.
    FreeHandOver,
    /// The machine has this number of CPUs.
    Cpus(Cpus),
    /// No limit by control groups on CPU time.
    NoQuota,
}

/// A change of goroutines. Groups are numbered as in [`crate::program::GoroutineWork::groups`] of the process that computes
/// most, waits as in the group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GoroutineChange {
    /// The lock of a wait is held for a shorter time, or split.
    LessLocked {
        /// The group.
        group: usize,
        /// The wait.
        wait: usize,
    },
    /// A channel whose places are permits has more places.
    MorePermits {
        /// The group.
        group: usize,
        /// The wait.
        wait: usize,
        /// Number of places after the change.
        then: u64,
    },
    /// A group's work is divided between two goroutines.
    SecondOfStage {
        /// The group.
        group: usize,
    },
    /// The machine has this number of CPUs.
    Cpus(u32),
}

impl Edit {
    /// Its name in JSON.
    pub fn name(&self) -> &'static str {
        self.into()
    }

    /// Whether the gain is assumed, not simulated: that a stretch can be divided, say, or that no thread waits for its turn.
    pub fn is_assumed(&self) -> bool {
        matches!(
            self,
            Edit::Divide(..)
                | Edit::NoTurns
                | Edit::OwnLines { .. }
                | Edit::WakeOne(_)
                | Edit::LargerTasks { .. }
                | Edit::WritersFirst { .. }
                | Edit::LessSupportWork { .. }
                | Edit::Goroutines(_)
                | Edit::Overlap { .. }
                | Edit::EvenRounds { .. }
        )
    }

    /// Whether the change gains time by letting threads run at the same time, not by making them compute less.
    pub(crate) fn needs_cpus(&self) -> bool {
        match self {
            Edit::FreeLocks(_)
            | Edit::SplitLock(..)
            | Edit::MoveOut(..)
            | Edit::Processes(_)
            | Edit::GroupCommit(..)
            | Edit::Permits { .. }
            | Edit::MoreThreads { .. }
            | Edit::MoreSleepers { .. }
            | Edit::DivideEvenly(_)
            | Edit::Divide(..)
            | Edit::FreeDevices(_)
            | Edit::NoSyncs
            | Edit::FreeIo
            | Edit::NoSleeps
            | Edit::NoPolling(_)
            | Edit::NoTurns
            | Edit::Goroutines(_)
            | Edit::Overlap { .. }
            | Edit::EvenRounds { .. }
            | Edit::FreeHandOver
            | Edit::WritersFirst { .. }
            | Edit::NoQuota => true,
            Edit::Scale(..)
            | Edit::FewerCalls(..)
            | Edit::FewerThreads { .. }
            | Edit::NoSpinning
            | Edit::NoSpunWaits
            | Edit::OwnLines { .. }
            | Edit::CostAsOn(_)
            | Edit::LessSupportWork { .. }
            | Edit::WakeOne(_)
            | Edit::LargerTasks { .. }
            | Edit::Cpus(_) => false,
        }
    }

    /// Whether the gain is an upper bound: the simulation changes more than the change can.
    pub fn is_at_best(&self) -> bool {
        self.is_assumed()
            || matches!(
                self,
                Edit::Processes(_)
                    | Edit::NoPolling(_)
                    | Edit::NoSpunWaits
                    | Edit::MoreSleepers { .. }
                    | Edit::NoSyncs
                    | Edit::CostAsOn(_)
            )
    }

    /// The change on this many CPUs: work divided among more threads than CPUs gets no faster.
    pub(crate) fn on(&self, cpus: Cpus) -> Edit {
        match self {
            Edit::Divide(part, among) => Edit::Divide(part.clone(), cpus.or(*among).min(*among)),
            _ => self.clone(),
        }
    }

    /// Rank of the change by effort: of changes with the same gain, the one with the smallest rank is reported, as the
    /// simplest to make.
    pub(crate) fn order(&self) -> u32 {
        match self {
            Edit::FreeLocks(_) | Edit::Processes(_) | Edit::SplitLock(..) | Edit::MoveOut(..) => 0,
            Edit::GroupCommit(..) | Edit::WritersFirst { .. } => 0,
            Edit::Goroutines(GoroutineChange::Cpus(_)) => 10,
            Edit::Goroutines(_) => 0,
            Edit::Permits { .. } => 0,
            // A runtime's work has one cause, the kernel's work many.
            Edit::LessSupportWork { subject, .. } if subject.is_kernels() => 2,
            Edit::OwnLines { .. } | Edit::WakeOne(_) | Edit::LessSupportWork { .. } => 1,
            Edit::LargerTasks { .. } => 1,
            Edit::FreeDevices(_) | Edit::NoSyncs | Edit::FreeIo => 1,
            Edit::CostAsOn(_) => 2,
            Edit::NoSleeps | Edit::NoPolling(_) | Edit::MoreSleepers { .. } => 2,
            Edit::DivideEvenly(_) | Edit::EvenRounds { .. } | Edit::FewerThreads { .. } => 3,
            Edit::MoreThreads { .. } => 4,
            Edit::Divide(..) | Edit::Overlap { .. } | Edit::Scale(..) | Edit::FewerCalls(..) => 5,
            Edit::NoTurns => 6,
            Edit::NoSpunWaits => 7,
            Edit::NoSpinning => 8,
            Edit::FreeHandOver => 9,
            Edit::Cpus(_) => 10,
            Edit::NoQuota => 11,
        }
    }

    /// Whether the same sentence describes both changes.
    pub(crate) fn is_worded_like(&self, other: &Edit) -> bool {
        let threads = |edit: &Edit| match edit {
            Edit::MoreThreads { threads, .. } | Edit::FewerThreads { threads, .. } => threads.len(),
            Edit::MoreSleepers { threads, more } => threads.len().saturating_add(*more),
            _ => 0,
        };
        let subject = |edit: &Edit| match edit {
            Edit::LessSupportWork { subject, .. } => Some(*subject),
            _ => None,
        };
        self.name() == other.name() && threads(self) == threads(other) && subject(self) == subject(other)
    }

    /// Whether both are the same change. `under` is not compared: it depends on the run that it was computed from.
    pub(crate) fn is_same(&self, other: &Edit) -> bool {
        match (self, other) {
            (
                Edit::MoreThreads { threads, more, .. },
                Edit::MoreThreads { threads: others, more: other_more, .. },
            ) => threads == others && more == other_more,
            _ => self == other,
        }
    }
}

/// Why a change cannot be made. `Display` is one line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EditError {
    /// A factor is not a number of at least 0.
    Factor,
    /// A lock cannot become 0 locks.
    NoLocks,
    /// No thread takes an object of this name as a lock.
    NotALock(String),
    /// Threads wait for conditions under the lock: the signalling threads must hold the same one.
    WithCondition(String),
    /// The lock's waits are replayed as recorded: they do not get shorter when the lock changes.
    Replayed(String),
    /// The program has nothing that the change applies to.
    NothingToChange(&'static str),
    /// The gain of this change is only computed as a bound, never simulated.
    NotSimulated,
}

impl EditError {
    /// How the user can correct the request; one line.
    pub fn hint(&self) -> &'static str {
        match self {
            EditError::Factor => {
                "a factor is a number of at least 0: 0.8 leaves four fifths of the time, 0 nothing"
            }
            EditError::NoLocks => "give the number of locks to split it into, such as cache=4",
            EditError::NotALock(_) => "`longpole report --by lock` lists the locks",
            EditError::WithCondition(_) => "split only locks that no condition variable is used with",
            EditError::Replayed(_) => {
                "record the command with its locks (longpole record -- COMMAND), so that locks can be simulated"
            }
            EditError::NothingToChange(_) => "`longpole report` shows what threads compute and wait for",
            EditError::NotSimulated => "`longpole report` says under FIX what it gains at best",
        }
    }
}

impl fmt::Display for EditError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            EditError::Factor => out.write_str("a factor that is not a number of at least 0"),
            EditError::NoLocks => out.write_str("a lock cannot be split into 0 locks"),
            EditError::NotALock(name) => write!(out, "{} is not a lock of this program", quoted(name)),
            EditError::WithCondition(name) => {
                write!(out, "{} cannot be split: threads wait for conditions under it", quoted(name))
            }
            EditError::Replayed(name) => {
                write!(out, "{} cannot be split: waits for it are replayed as recorded", quoted(name))
            }
            EditError::NothingToChange(what) => write!(out, "the change has no effect: {what}"),
            EditError::NotSimulated => out.write_str("what that gains is computed, not simulated"),
        }
    }
}

impl std::error::Error for EditError {}
