//! All that can be changed about a program, for `what-if`, FIX and the search for what limits.

use super::divide::Part;
use crate::cpus::Cpus;
use crate::event::SupportSubject;
use crate::program::{FunctionRef, ObjectId, quoted};
use std::fmt;

/// A change. Its `strum` name is that of FIX in JSON.
#[derive(Clone, Debug, PartialEq, strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum Edit {
    /// What these functions compute themselves takes this many times as long; 0 is not at all.
    #[strum(serialize = "faster")]
    Scale(Vec<FunctionRef>, f64),
    /// This part of the calls of a function of the C library that asks the kernel for something; each takes as long as before.
    FewerCalls(FunctionRef, f64),
    /// The lock becomes that many, and each time one of them, drawn by chance, is taken instead.
    SplitLock(ObjectId, u32),
    /// What the function computes while one of these locks is held is computed before it is taken.
    MoveOut(FunctionRef, Vec<ObjectId>),
    /// One of this many threads that wait for the lock syncs a file under it for all of them.
    GroupCommit(ObjectId, u32),
    /// Every thread finds these locks free.
    FreeLocks(Vec<ObjectId>),
    /// Every thread finds these locks, an interpreter's own, free: at best that is what processes in place of threads gain.
    Processes(Vec<ObjectId>),
    /// What one thread computes alone is divided among this many.
    Divide(Part, usize),
    /// More threads in addition to these, which do the same: what they compute is divided among all, except under a lock.
    #[strum(serialize = "one_more_thread")]
    MoreThreads {
        /// The threads, by their places in the program.
        threads: Vec<usize>,
        /// How many more.
        more: usize,
        /// The locks under which nothing is divided; `None`: any lock.
        under: Option<Vec<ObjectId>>,
    },
    /// More threads in addition to these, which mostly sleep in what they do: that is divided among all, except under a lock or with a
    /// permit. What is computed stays as it is.
    #[strum(serialize = "more_sleepers")]
    MoreSleepers {
        /// The threads, by their places in the program.
        threads: Vec<usize>,
        /// How many more.
        more: usize,
    },
    /// Fewer threads: some of these do what all of them did.
    #[strum(serialize = "fewer_threads")]
    FewerThreads {
        /// The threads, by their places in the program.
        threads: Vec<usize>,
        /// How many are left.
        kept: usize,
    },
    /// Threads have equally much to do: between barriers, until they are waited for, and in these groups of threads that do the
    /// same.
    #[strum(serialize = "balance")]
    DivideEvenly(Vec<Vec<usize>>),
    /// A semaphore begins with another number of permits.
    #[strum(serialize = "more_permits")]
    Permits {
        /// Which.
        semaphore: ObjectId,
        /// Permits now.
        now: u32,
        /// Permits then.
        then: u32,
    },
    /// Waiting for these devices takes no time.
    FreeDevices(Vec<ObjectId>),
    /// Syncing files takes no time: at best that is what doing so less often gains.
    #[strum(serialize = "fewer_syncs")]
    NoSyncs,
    /// Waiting for any device takes no time.
    FreeIo,
    /// No thread sleeps or waits for a timer.
    NoSleeps,
    /// These threads, which sleep and look again whether there is something to do, find it at once: at best that is what waking them
    /// gains.
    NoPolling(Vec<usize>),
    /// A thread that waits for a spin lock gives its CPU away.
    NoSpinning,
    /// No thread spins until another one does something: it goes on at once.
    NoSpunWaits,
    /// Threads that take turns work at the same time.
    NoTurns,
    /// Threads that use one cache line get one each.
    OwnLines {
        /// Its number in [`crate::program::Recorded::lines`].
        line: usize,
        /// Each thread has words of its own already.
        is_false: bool,
    },
    /// All functions take as much CPU time as they do on this many CPUs, as runs of the command show.
    #[strum(serialize = "share_less")]
    CostAsOn(u32),
    /// The kernel or the runtime does none of this work.
    LessSupportWork {
        /// Its number in [`crate::program::Recorded::support`].
        work: usize,
        /// What it is about.
        subject: SupportSubject,
    },
    /// One thread is woken where all that wait are, and the others find nothing to do; the number of the object in
    /// [`crate::program::Recorded::objects`].
    WakeOne(usize),
    /// Waking threads and putting them on CPUs takes no time.
    FreeHandOver,
    /// This many CPUs.
    Cpus(Cpus),
    /// No limit on the CPU time of its control groups.
    NoQuota,
}

impl Edit {
    /// Its name in JSON.
    pub fn name(&self) -> &'static str {
        self.into()
    }

    /// Whether the gain is an assumption and not simulated: that a stretch can be divided, or that nobody waits for a turn.
    pub fn is_assumed(&self) -> bool {
        matches!(
            self,
            Edit::Divide(..)
                | Edit::NoTurns
                | Edit::OwnLines { .. }
                | Edit::WakeOne(_)
                | Edit::LessSupportWork { .. }
        )
    }

    /// Whether its gain is a bound: what is simulated is more than the change can give.
    pub fn is_at_best(&self) -> bool {
        self.is_assumed()
            || matches!(
                self,
                Edit::Processes(_)
                    | Edit::NoPolling(_)
                    | Edit::MoreSleepers { .. }
                    | Edit::NoSyncs
                    | Edit::CostAsOn(_)
            )
    }

    /// On this many CPUs: work that is divided among more threads than CPUs gets no faster.
    pub(crate) fn on(&self, cpus: Cpus) -> Edit {
        match self {
            Edit::Divide(part, among) => Edit::Divide(part.clone(), cpus.or(*among).min(*among)),
            _ => self.clone(),
        }
    }

    /// Of two that gain the same, the one with the smaller number is reported: what is simpler to change.
    pub(crate) fn order(&self) -> u32 {
        match self {
            Edit::FreeLocks(_) | Edit::Processes(_) | Edit::SplitLock(..) | Edit::MoveOut(..) => 0,
            Edit::GroupCommit(..) => 0,
            Edit::Permits { .. } => 0,
            // What a runtime does has one cause, what the kernel does many.
            Edit::LessSupportWork { subject, .. } if subject.is_kernels() => 2,
            Edit::OwnLines { .. } | Edit::WakeOne(_) | Edit::LessSupportWork { .. } => 1,
            Edit::FreeDevices(_) | Edit::NoSyncs | Edit::FreeIo => 1,
            Edit::CostAsOn(_) => 2,
            Edit::NoSleeps | Edit::NoPolling(_) | Edit::MoreSleepers { .. } => 2,
            Edit::DivideEvenly(_) | Edit::FewerThreads { .. } => 3,
            Edit::MoreThreads { .. } => 4,
            Edit::Divide(..) | Edit::Scale(..) | Edit::FewerCalls(..) => 5,
            Edit::NoTurns => 6,
            Edit::NoSpunWaits => 7,
            Edit::NoSpinning => 8,
            Edit::FreeHandOver => 9,
            Edit::Cpus(_) => 10,
            Edit::NoQuota => 11,
        }
    }

    /// Whether one sentence says both.
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
    /// The program has nothing that the change is about.
    NothingToChange(&'static str),
    /// What the change gains is a bound that is computed from a run.
    NotSimulated,
}

impl EditError {
    /// What to do about it; one line.
    pub fn hint(&self) -> &'static str {
        match self {
            EditError::Factor => "a factor is a number of at least 0: 0.8 is a fifth less, 0 is not at all",
            EditError::NoLocks => "give the number of locks to split it into, such as cache=4",
            EditError::NotALock(_) => "`longpole report --by lock` lists the locks",
            EditError::WithCondition(_) => "split only locks that no condition variable is used with",
            EditError::Replayed(_) => {
                "record the command with its locks (longpole record -- COMMAND), so that they can be decided anew"
            }
            EditError::NothingToChange(_) => "`longpole report` shows what threads compute and wait for",
            EditError::NotSimulated => "`longpole report` says under FIX what it gains at best",
        }
    }
}

impl fmt::Display for EditError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            EditError::Factor => out.write_str("a factor that is no number of at least 0"),
            EditError::NoLocks => out.write_str("a lock cannot be split into 0 locks"),
            EditError::NotALock(name) => write!(out, "{} is no lock of this program", quoted(name)),
            EditError::WithCondition(name) => {
                write!(out, "{} cannot be split: threads wait for conditions under it", quoted(name))
            }
            EditError::Replayed(name) => {
                write!(out, "{} cannot be split: who waited for it is replayed as recorded", quoted(name))
            }
            EditError::NothingToChange(what) => write!(out, "the change has no effect: {what}"),
            EditError::NotSimulated => out.write_str("what that gains is computed, not simulated"),
        }
    }
}

impl std::error::Error for EditError {}
