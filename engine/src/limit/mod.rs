//! What limits a program: its predicted time is computed again with one constraint removed (ours; coz and the
//! 2001 paper ask this of functions, this module of everything else). The constraint whose removal gains most
//! is the limit ([`ledger`]). If none gains 5 %, the limit is the largest part of the path: the work, or a wait.
//!
//! Only constraints that threads wait for are tried, the longest waits first: removing a constraint without waiters
//! gains nothing. This bounds the number of runs, as does [`Search`]'s own limit for large programs.
//!
//! *One more thread* applies to threads that do the same and are busy most of the time: their computing is
//! divided among one thread more. A pool that is not recognized this way gets no such answer.

mod candidates;
mod causes;
mod changes;
mod extent;
mod first_asked;
mod ledger;
mod model_fit;
mod path_causes;
mod row;
mod search;
#[cfg(test)]
mod tests;
mod threads;
mod watched_run;

pub use causes::idle::MostlyAsleep;
pub use changes::fixes::Fix;
pub use changes::top_functions::{FunctionUse, Tenth};
pub use row::{Evidence, LedgerRow};
pub use search::{Found, Search, limits};
pub use threads::uses::{LockUse, ThreadUse};

use crate::cpus::Cpus;
use crate::event::SupportSubject;
use crate::finding::Stuck;
use crate::json::number;
use crate::predict::CpuCosts;
use crate::program::{Endpoint, LockWaits, OtherUse};
use serde::Serialize;

/// A constraint that gains less than this share of the time is no limit.
pub const WORTH: f64 = 0.05;

/// What limits a program, and what can be done about it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Limits {
    /// The limit on the recorded machine (of a program written by hand: on the largest CPU count asked for), then on the
    /// largest CPU count asked for, if that is another one.
    pub at: Vec<Limit>,
    /// Changes on the first of these CPU counts, the largest gain first; at most three.
    pub fixes: Vec<Fix>,
    /// Locks that threads wait for on the first of these CPU counts, the longest waits first.
    pub locks: Vec<LockUse>,
    /// The gain of one more thread in the pool that does most of the work, on the first of these CPU counts.
    pub more_threads: Option<MoreThreads>,
    /// Functions that compute most, standard functions counted for their callers, the largest first.
    pub functions: Vec<FunctionUse>,
    /// What threads do on the first of these CPU counts; threads that do the same are one entry, the busiest first.
    pub threads: Vec<ThreadUse>,
    /// What the program cost on several CPU counts, if it was run on them.
    pub costs: Option<CpuCosts>,
    /// Requests over sockets, the requests that the program serves first.
    pub traffic: Vec<Endpoint>,
    /// Programs that were not recorded and used CPUs during the recording, the largest first.
    pub others: Vec<OtherUse>,
    /// For a program that sleeps for most of its recording: the predicted time covers only the rest.
    pub asleep: Option<MostlyAsleep>,
}

/// The gain of one more thread in a pool of threads that do the same and compute most of the work.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MoreThreads {
    /// How many threads the pool has.
    pub threads: usize,
    /// The share of the predicted time that one more thread saves.
    pub gain: f64,
}

/// What limits on one CPU count.
#[derive(Clone, Debug, PartialEq)]
pub struct Limit {
    /// The CPU count.
    pub cpus: Cpus,
    /// Predicted time, nanoseconds.
    pub time_ns: f64,
    /// What limits.
    pub kind: LimitKind,
    /// Predicted time without the limit, nanoseconds; `time_ns` if it is unknown what its removal saves.
    pub without_ns: f64,
    /// The limit's part of the critical path, or of the recording, although its removal may gain nothing.
    pub share: f64,
    /// How gain and share are known.
    pub evidence: Evidence,
    /// Other causes that gain at least [`WORTH`], or may, in the ledger's order.
    pub others: Vec<LedgerRow>,
}

impl Limit {
    /// From rows of the ledger; the first row is the limit.
    fn of(cpus: Cpus, time_ns: f64, rows: Vec<LedgerRow>) -> Limit {
        let mut rows = rows.into_iter();
        let Some(LedgerRow { kind, least, most, evidence }) = rows.next() else {
            return Limit::known(cpus, time_ns, LimitKind::Nothing);
        };
        // Without these causes the recorded run may lose more of its time than the simulated run.
        let is_of_recorded =
            matches!(kind, LimitKind::TooManyThreads { .. } | LimitKind::WokenForNothing { .. });
        let most_known = if is_of_recorded { least } else { most };
        let is_change = matches!(evidence, Evidence::Simulated | Evidence::Bounded);
        let goes = if is_change && !matches!(kind, LimitKind::Idle { .. }) { most_known } else { 0.0 };
        Limit {
            without_ns: time_ns * (1.0 - goes),
            kind,
            share: most,
            evidence,
            others: rows.collect(),
            cpus,
            time_ns,
        }
    }

    /// A limit without a row in the ledger: nothing is gained without it, as far as is known.
    pub fn known(cpus: Cpus, time_ns: f64, kind: LimitKind) -> Limit {
        Limit {
            cpus,
            time_ns,
            kind,
            without_ns: time_ns,
            share: 0.0,
            evidence: Evidence::Measured,
            others: Vec::new(),
        }
    }

    /// The same CPU count and time with another row as the limit.
    pub fn with(&self, row: &LedgerRow) -> Limit {
        Limit::of(self.cpus, self.time_ns, vec![row.clone()])
    }

    /// The share of the predicted time that is saved without the limit.
    pub fn gain(&self) -> f64 {
        if self.time_ns > 0.0 { 1.0 - self.without_ns / self.time_ns } else { 0.0 }
    }

    /// Other causes that may gain more than this limit, but cannot be simulated.
    pub fn may_be_more(&self) -> impl Iterator<Item = &LedgerRow> {
        let gain = self.gain();
        // The part of the run that the prediction lacks has its own note.
        let is_told = |kind: &LimitKind| matches!(kind, LimitKind::Unexplained { .. });
        let may_be =
            move |row: &&LedgerRow| row.most > gain + WORTH && row.least < row.most && !is_told(&row.kind);
        self.others.iter().filter(may_be)
    }
}

/// A function and its share of something.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FunctionShare {
    /// The function's name.
    pub function: String,
    /// The share, from 0 to 1.
    #[serde(rename = "function_share")]
    pub share: f64,
}

/// What limits.
///
/// As JSON it is an object: `kind`, the variant's name, and its fields. Fields of several kinds that mean the same have the
/// same name.
#[derive(Clone, Debug, PartialEq, Serialize, strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum LimitKind {
    /// A lock, or several that were first used in one place.
    Lock {
        /// The lock's name; of several locks the name of the one with the longest waits.
        lock: String,
        /// How many locks.
        locks: usize,
        /// How many threads wait for it on average.
        waiting: f64,
        /// How many threads take it.
        threads: usize,
        /// The function that computes most while the lock is held, with its share of all computing under the lock.
        #[serde(flatten)]
        holder: Option<FunctionShare>,
    },
    /// The hand-over from one thread to the next: waking threads and putting them on CPUs.
    HandOver {
        /// The object that most waits are for, if there is one.
        #[serde(skip_serializing_if = "Option::is_none")]
        object: Option<String>,
    },
    /// CPUs: with more of them the program is faster.
    Cpus {
        /// Threads that compute or are runnable, on average.
        #[serde(rename = "waiting")]
        wanting: f64,
    },
    /// The quota that control groups, such as a container's, set on the program's CPU time: without it the program is faster.
    Quota {
        /// The quota in hundredths of a CPU.
        #[serde(rename = "quota_percent")]
        hundredths: u32,
    },
    /// Threads that do the same are busy, and CPUs are free: there are too few threads.
    Threads {
        /// How many threads there are.
        threads: usize,
        /// The function that they compute most.
        #[serde(skip_serializing_if = "Option::is_none")]
        function: Option<String>,
        /// The share of the time in which they compute, or wait for a CPU.
        busy: f64,
    },
    /// All threads of a pool sleep during their work, while there is more work.
    Sleepers {
        /// How many threads there are.
        threads: usize,
        /// The function that they compute most.
        #[serde(skip_serializing_if = "Option::is_none")]
        function: Option<String>,
        /// The share of the time in which they sleep.
        asleep: f64,
        /// The answers that they wait for, if these waits take longer than their sleeps.
        #[serde(rename = "device", skip_serializing_if = "Option::is_none")]
        answers: Option<String>,
    },
    /// More threads than CPUs do the same and wait for each other: fewer threads are faster.
    TooManyThreads {
        /// How many threads there are.
        threads: usize,
        /// The number of threads with which the program is faster.
        then: usize,
        /// The function that they compute most.
        #[serde(skip_serializing_if = "Option::is_none")]
        function: Option<String>,
    },
    /// One stretch in which one thread computes alone.
    Serial {
        /// Which thread.
        thread: String,
        /// The function that the thread computes most in the stretch.
        #[serde(skip_serializing_if = "Option::is_none")]
        function: Option<String>,
        /// The stretch's length, nanoseconds.
        #[serde(serialize_with = "number")]
        length_ns: f64,
        /// Threads that compute at any time of the run.
        threads: usize,
    },
    /// One thread computes most of the time while others compute little.
    BusyThread {
        /// Which thread.
        thread: String,
        /// The function that the thread computes most.
        #[serde(skip_serializing_if = "Option::is_none")]
        function: Option<String>,
        /// The share of the time in which the thread computes.
        busy: f64,
    },
    /// Threads take turns: at any time only one of them computes, and that thread changes often. Each waits for the
    /// work of the thread before it, but for no lock.
    Turns {
        /// How many threads, or processes.
        threads: usize,
        /// Each thread is the only one of its process.
        processes: bool,
        /// How often the computing thread changes.
        changes: u64,
    },
    /// Threads wait for each other at barriers or their ends, because some have more to do than others.
    Imbalance {
        /// The function that the thread with the most work computes most.
        #[serde(skip_serializing_if = "Option::is_none")]
        function: Option<String>,
    },
    /// One thread of a pipeline is busy while the threads before or after it wait.
    Stage {
        /// Which thread.
        thread: String,
        /// The function that the thread computes most.
        #[serde(skip_serializing_if = "Option::is_none")]
        function: Option<String>,
    },
    /// Waiting for a device or for another program.
    Device {
        /// The device's name.
        device: String,
    },
    /// A cache line that several threads use and change at the same time: one CPU at a time can change it.
    CacheLine {
        /// The variables in the line, or the address.
        #[serde(rename = "object")]
        line: String,
        /// The function that uses the line most.
        #[serde(skip_serializing_if = "Option::is_none")]
        function: Option<String>,
        /// Threads that use the line.
        threads: usize,
        /// Threads that only read the line.
        readers: usize,
        /// False sharing: each changed word belongs to one thread.
        is_false: bool,
    },
    /// The same work takes more CPU time on more CPUs, as runs of the command show: threads share memory or caches.
    CostsMore {
        /// The smallest number of CPUs on which the command was run, and the largest.
        few: u32,
        /// See `few`.
        many: u32,
        /// All CPU time on the largest number, divided by that on the smallest.
        growth: f64,
        /// The function whose CPU time grows most, with that time on the fewest CPUs, nanoseconds; `None`: all CPU time.
        #[serde(skip_serializing_if = "Option::is_none")]
        function: Option<String>,
        /// See `function`.
        #[serde(serialize_with = "number")]
        few_ns: f64,
        /// The same CPU time on the largest number of CPUs, nanoseconds.
        #[serde(serialize_with = "number")]
        many_ns: f64,
    },
    /// Work of the kernel or a runtime for the program: page faults, system calls, garbage collection.
    SupportWork {
        /// The subject of the work.
        subject: SupportSubject,
        /// Its most frequent calls, in words.
        #[serde(rename = "object")]
        calls: String,
        /// The work's part of the CPU time.
        cpu_share: f64,
        /// The function that causes most of it.
        #[serde(skip_serializing_if = "Option::is_none")]
        function: Option<String>,
        /// The standard function that this function calls for the work.
        #[serde(skip_serializing_if = "Option::is_none")]
        via: Option<String>,
        /// Threads of one process that cause the work.
        threads: usize,
        /// How long these threads wait for locks of the kernel in the work; `None`: not recorded.
        #[serde(rename = "kernel_locks", skip_serializing_if = "Option::is_none")]
        lock_waits: Option<LockWaits>,
    },
    /// Permits of a semaphore, such as a pool's connections: all are in use, and threads wait for one.
    Permits {
        /// The semaphore.
        #[serde(rename = "object")]
        semaphore: String,
        /// How many permits there are.
        permits: u32,
        /// Threads that use permits, and how many wait for one on average.
        threads: usize,
        /// See `threads`.
        waiting: f64,
    },
    /// All threads that wait for something are woken, and most of them find nothing to do.
    WokenForNothing {
        /// The object that they wait for.
        object: String,
        /// How many wake-ups there were, and how many found nothing to do.
        wakings: u64,
        /// See `wakings`.
        for_nothing: u64,
    },
    /// Sleeps and timers that other work waits for.
    Timers,
    /// Threads sleep, look whether there is something to do, and sleep again.
    Polling {
        /// How many threads.
        threads: usize,
        /// How long they sleep each time, nanoseconds.
        #[serde(rename = "length_ns", serialize_with = "number")]
        every_ns: f64,
        /// The function in which they sleep.
        #[serde(skip_serializing_if = "Option::is_none")]
        function: Option<String>,
    },
    /// Threads wait for other threads and keep CPUs busy meanwhile.
    SpunWaits {
        /// Threads that spin, on average.
        waiting: f64,
    },
    /// Spin locks, whose waiters keep CPUs busy that other threads want.
    Spinning,
    /// The program waits for work or for time: no limit.
    Idle {
        /// CPUs that the program uses on average.
        busy: f64,
    },
    /// Requests wait in the program for something that is not visible, and CPUs are free.
    OpenRequests {
        /// The port at which the requests arrive.
        port: String,
        /// How many requests are open on average.
        open: f64,
        /// How long a request takes until its answer begins, on average, nanoseconds.
        #[serde(serialize_with = "number")]
        mean_ns: f64,
        /// The part of `mean_ns` before a thread reads the request.
        queued: f64,
        /// CPUs in use on average.
        busy: f64,
        /// The program runs goroutines.
        hidden: bool,
        /// The server for whose answers they wait, and how many requests are open there, if those explain the wait.
        #[serde(skip_serializing_if = "Option::is_none")]
        asked: Option<(String, f64)>,
    },
    /// All connections to another server have a request open, and more requests wait for one.
    Connections {
        /// The server.
        #[serde(rename = "object")]
        server: String,
        /// How many connections there are.
        connections: u32,
        /// How many requests wait, on average.
        waiting: f64,
        /// The port at which the requests arrive.
        port: String,
    },
    /// The kernel drops new connections, since the queue of those that the program has not accepted is full. Clients try again
    /// after a second.
    Backlog {
        /// How many connections were dropped, for all programs in the network namespace.
        dropped: u64,
    },
    /// Goroutines wait for a lock, as samples show; the waits themselves are not visible.
    Goroutines {
        /// Its type, e.g. `sync.Mutex`.
        lock: String,
        /// The function that does so most.
        #[serde(skip_serializing_if = "Option::is_none")]
        function: Option<String>,
        /// Samples that show waits for locks.
        samples: u64,
        /// CPUs in use on average.
        busy: f64,
    },
    /// The work itself.
    Work {
        /// CPUs in use on average.
        busy: f64,
        /// Goroutines run, and their waits are not visible.
        hidden: bool,
    },
    /// The program does not end.
    Deadlock {
        /// Which thread waits for what.
        #[serde(skip)]
        stuck: Stuck,
    },
    /// Most of the threads' time is unknown, or the simulation ends in a deadlock that did not happen (`missing` is 0).
    NotKnown {
        /// The share of the time that is unknown.
        missing: f64,
    },
    /// Most of the recorded run is not in the prediction for that machine, so the limit is probably not in it either.
    Unexplained {
        /// Predicted time, nanoseconds.
        #[serde(serialize_with = "number")]
        predicted_ns: f64,
        /// Recorded time in which the program was awake, nanoseconds.
        #[serde(serialize_with = "number")]
        measured_ns: f64,
    },
    /// Threads wait for what may be a lock; its operations were not recorded.
    LocksNotRecorded {
        /// The futex word with the longest waits.
        #[serde(rename = "object")]
        word: String,
        /// How many threads wait for the word on average, as recorded.
        waiting: f64,
        /// The word is used as a lock is: most waits are for it, and threads that wait for it end each other's waits.
        is_lock: bool,
        /// Operations were recorded, but many were lost: which thread had a lock at what time is unknown.
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        is_lost: bool,
        /// The share of the program's CPU time that recording the operations would cost, if that was tried.
        #[serde(skip_serializing_if = "Option::is_none")]
        cost: Option<f64>,
    },
    /// The program computes nothing.
    Nothing,
}

impl LimitKind {
    /// Whether the limit, or the probable limit, is known.
    pub fn is_known(&self) -> bool {
        !matches!(
            self,
            LimitKind::NotKnown { .. }
                | LimitKind::Unexplained { .. }
                | LimitKind::OpenRequests { asked: None, .. }
                | LimitKind::LocksNotRecorded { is_lock: false, .. }
        )
    }

    /// Whether the limit is a wait, or unknown: what threads compute meanwhile is not in the way.
    pub fn is_wait(&self) -> bool {
        matches!(
            self,
            LimitKind::Idle { .. }
                | LimitKind::Timers
                | LimitKind::Polling { .. }
                | LimitKind::Device { .. }
                | LimitKind::LocksNotRecorded { .. }
                | LimitKind::Goroutines { .. }
                | LimitKind::Connections { .. }
                | LimitKind::Backlog { .. }
        ) || !self.is_known()
    }

    /// Whether one more thread could not compute at the same time: only one makes progress, or no CPU is free for long.
    pub(crate) fn is_full(&self) -> bool {
        matches!(
            self,
            LimitKind::Cpus { .. }
                | LimitKind::Quota { .. }
                | LimitKind::TooManyThreads { .. }
                | LimitKind::SpunWaits { .. }
                | LimitKind::Lock { .. }
                | LimitKind::Turns { .. }
                | LimitKind::CacheLine { .. }
                | LimitKind::LocksNotRecorded { .. }
        )
    }

    /// The kind's name in JSON.
    pub fn name(&self) -> &'static str {
        self.into()
    }
}
