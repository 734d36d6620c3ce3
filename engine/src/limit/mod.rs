//! What limits a program: its predicted time, computed again with one constraint gone (ours; the question
//! that coz and the 2001 paper ask of functions, asked of everything else). The constraint that gains most is
//! the limit ([`ledger`]). If none gains 5 %, the limit is what most of the path is: the work, or a wait.
//!
//! Only constraints that threads wait for are tried, the longest waits first: removing one without waiters
//! gains nothing. That bounds the number of runs, as does [`Search`]'s own limit for large programs.
//!
//! *One more thread* applies to threads that do the same and are busy most of the time: their computing is
//! divided among one more. A pool that is not recognized this way gets no such answer.

mod asked_again;
mod beside_others;
mod busy_thread;
mod candidates;
mod cohorts;
mod cpu_costs;
mod describe;
mod extent;
mod fewer_threads;
mod first_asked;
mod fixes;
mod goroutines;
mod holders;
mod idle;
mod ledger;
mod loaded;
mod model_fit;
mod more_threads;
mod open_requests;
mod path_causes;
mod permits;
mod pools;
mod row;
mod search;
mod shared_lines;
mod sleepers;
mod started_alike;
mod stretch;
mod support_work;
#[cfg(test)]
mod tests;
mod thread_group;
mod thread_name;
mod thread_samples;
mod top_functions;
mod unrecorded_locks;
mod uses;
mod watched_run;
mod woken_for_nothing;
mod worker_groups;

pub use fixes::Fix;
pub use idle::MostlyAsleep;
pub use row::{Evidence, Row};
pub use search::{Found, Search, limits};
pub use top_functions::{FunctionUse, Tenth};
pub use uses::{LockUse, ThreadUse};

use crate::cpus::Cpus;
use crate::event::SupportSubject;
use crate::finding::Stuck;
use crate::predict::CpuCosts;
use crate::program::{Endpoint, LockWaits, OtherUse};

/// A constraint that gains less than this share of the time is no limit.
pub const WORTH: f64 = 0.05;

/// What limits a program, and what can be done about it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Limits {
    /// On the machine that was recorded (of a program written by hand: on the largest CPU count asked for), then on the largest
    /// CPU count asked for, if that is another one.
    pub at: Vec<Limit>,
    /// Changes on the first of these CPU counts, the largest gain first; at most three.
    pub fixes: Vec<Fix>,
    /// Locks that are waited for on the first of these CPU counts, the longest first.
    pub locks: Vec<LockUse>,
    /// What one more of the threads that do the same is worth there.
    pub more_threads: Option<MoreThreads>,
    /// Functions that compute most, standard ones counted for their callers, the largest first.
    pub functions: Vec<FunctionUse>,
    /// What threads do there; those that do the same are together, the busiest first.
    pub threads: Vec<ThreadUse>,
    /// What it took on several numbers of CPUs, if it was run on them.
    pub costs: Option<CpuCosts>,
    /// Requests over sockets, what is served first.
    pub traffic: Vec<Endpoint>,
    /// Programs that were not recorded and had CPUs meanwhile, the largest first.
    pub others: Vec<OtherUse>,
    /// Of a program that sleeps for most of its recording: the predicted time is of the rest.
    pub asleep: Option<MostlyAsleep>,
}

/// What one more of several threads that do the same, and most of what is computed, is worth.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MoreThreads {
    /// How many there are.
    pub threads: usize,
    /// The share of the predicted time that goes with one more.
    pub gain: f64,
}

/// What limits on one CPU count.
#[derive(Clone, Debug, PartialEq)]
pub struct Limit {
    /// The CPU count.
    pub cpus: Cpus,
    /// Predicted time, nanoseconds.
    pub time_ns: f64,
    /// What it is.
    pub kind: Kind,
    /// Predicted time without it, nanoseconds; `time_ns` if nothing is known to be taken away.
    pub without_ns: f64,
    /// Its part of the critical path, or of the recording: what it takes, though nothing may be gained without it.
    pub share: f64,
    /// How that is known.
    pub evidence: Evidence,
    /// Other causes that are worth at least [`WORTH`], or may be, in the ledger's order.
    pub others: Vec<Row>,
}

impl Limit {
    /// By rows of the ledger; the first one limits.
    fn of(cpus: Cpus, time_ns: f64, rows: Vec<Row>) -> Limit {
        let mut rows = rows.into_iter();
        let Some(Row { kind, least, most, evidence }) = rows.next() else {
            return Limit::known(cpus, time_ns, Kind::Nothing);
        };
        // Of these more may be gone of the recorded run than of the simulated one.
        let is_of_recorded = matches!(kind, Kind::TooManyThreads { .. } | Kind::WokenForNothing { .. });
        let most_known = if is_of_recorded { least } else { most };
        let is_change = matches!(evidence, Evidence::Simulated | Evidence::Bounded);
        let goes = if is_change && !matches!(kind, Kind::Idle { .. }) { most_known } else { 0.0 };
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

    /// One that no row says more about.
    pub fn known(cpus: Cpus, time_ns: f64, kind: Kind) -> Limit {
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

    /// The same with another row in the first one's place.
    pub fn with(&self, row: &Row) -> Limit {
        Limit::of(self.cpus, self.time_ns, vec![row.clone()])
    }

    /// The share of the time that goes without it.
    pub fn gain(&self) -> f64 {
        if self.time_ns > 0.0 { 1.0 - self.without_ns / self.time_ns } else { 0.0 }
    }

    /// Causes that may bring more than this one, which nobody can simulate.
    pub fn may_be_more(&self) -> impl Iterator<Item = &Row> {
        let gain = self.gain();
        // What the prediction lacks has a note of its own.
        let is_told = |kind: &Kind| matches!(kind, Kind::Unexplained { .. });
        let may_be = move |row: &&Row| row.most > gain + WORTH && row.least < row.most && !is_told(&row.kind);
        self.others.iter().filter(may_be)
    }
}

/// A function and its share of something.
#[derive(Clone, Debug, PartialEq)]
pub struct Part {
    /// Its name.
    pub function: String,
    /// From 0 to 1.
    pub share: f64,
}

/// What limits.
#[derive(Clone, Debug, PartialEq, strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum Kind {
    /// A lock, or several that were first used in one place.
    Lock {
        /// Its name; of several the one that is waited for longest.
        lock: String,
        /// How many locks.
        locks: usize,
        /// How many threads wait for it on average.
        waiting: f64,
        /// How many threads take it.
        threads: usize,
        /// The function that computes most while it is held, and its share of that.
        holder: Option<Part>,
    },
    /// Going from one thread to the next: waking threads and putting them on CPUs.
    HandOver {
        /// What most of them wait for, if that is one object.
        object: Option<String>,
    },
    /// CPUs: with more of them it is faster.
    Cpus {
        /// Threads that compute or want to, on average.
        wanting: f64,
    },
    /// The limit that the program's control groups set on its CPU time, a container's: with none it is faster.
    Quota {
        /// Hundredths of a CPU.
        hundredths: u32,
    },
    /// Threads that do the same are busy, and CPUs are free: there are too few threads.
    Threads {
        /// How many there are.
        threads: usize,
        /// What they compute most.
        function: Option<String>,
        /// The share of the time in which they compute, or wait for a CPU.
        busy: f64,
    },
    /// Threads that do the same sleep in it, and there is more to do meanwhile.
    Sleepers {
        /// How many there are.
        threads: usize,
        /// What they do.
        function: Option<String>,
        /// The share of the time in which they sleep.
        asleep: f64,
        /// The answers that they wait for in that, if it is mostly that.
        answers: Option<String>,
    },
    /// More threads that do the same than CPUs, which wait for each other: fewer of them are faster.
    TooManyThreads {
        /// How many there are.
        threads: usize,
        /// How many are faster.
        then: usize,
        /// What they compute most.
        function: Option<String>,
    },
    /// One stretch in which one thread computes alone.
    Serial {
        /// Which thread.
        thread: String,
        /// What it computes most in it.
        function: Option<String>,
        /// How long it is, nanoseconds.
        length_ns: f64,
        /// Threads that compute at any time.
        threads: usize,
    },
    /// One thread computes most of the time while others compute little.
    BusyThread {
        /// Which thread.
        thread: String,
        /// What it computes most.
        function: Option<String>,
        /// For which share of the time it computes.
        busy: f64,
    },
    /// At any time only one of several threads computes, and which one changes all the time: each waits for what the one before it
    /// does, though for no lock.
    Turns {
        /// How many threads, or processes.
        threads: usize,
        /// They are processes of one thread each.
        processes: bool,
        /// How often another one goes on.
        changes: u64,
    },
    /// Threads wait for each other at barriers or their ends, since some have more to do than others.
    Imbalance {
        /// What those compute most that have most to do.
        function: Option<String>,
    },
    /// One thread of a pipeline is busy while those that feed it, or that it feeds, wait.
    Stage {
        /// Which thread.
        thread: String,
        /// What it computes most.
        function: Option<String>,
    },
    /// Waiting for a device or for another program.
    Device {
        /// Which.
        device: String,
    },
    /// A cache line that several threads use and change at the same time: one CPU at a time can change it.
    CacheLine {
        /// The variables in it, or the address.
        line: String,
        /// The function that uses it most.
        function: Option<String>,
        /// Threads that do.
        threads: usize,
        /// Those of them that change nothing in it.
        readers: usize,
        /// Each changed word is one thread's own.
        is_false: bool,
    },
    /// The same work takes more CPU time on more CPUs, as runs of the command show: threads share memory or caches.
    CostsMore {
        /// The smallest number of CPUs that it was run on, and the largest.
        few: u32,
        /// See `few`.
        many: u32,
        /// All CPU time on the largest number, divided by that on the smallest.
        growth: f64,
        /// The function that grows most, and its CPU time on the smallest number of CPUs, nanoseconds; without one, that of all.
        function: Option<String>,
        /// See `function`.
        few_ns: f64,
        /// The same on the largest number.
        many_ns: f64,
    },
    /// What the kernel or a runtime computes for the program: page faults, system calls, garbage collection.
    SupportWork {
        /// What it is about.
        subject: SupportSubject,
        /// Its most frequent calls, in words.
        calls: String,
        /// Its part of the CPU time.
        cpu_share: f64,
        /// The function that causes most of it.
        function: Option<String>,
        /// The standard function that it calls for that.
        via: Option<String>,
        /// Threads of one process that cause it.
        threads: usize,
        /// How long they wait for locks of the kernel in it; `None`: that was not recorded.
        lock_waits: Option<LockWaits>,
    },
    /// Permits of a semaphore, a pool's connections: all are in use, and threads wait for one.
    Permits {
        /// The semaphore.
        semaphore: String,
        /// How many there are.
        permits: u32,
        /// Threads that want one, and how many wait on average.
        threads: usize,
        /// See `threads`.
        waiting: f64,
    },
    /// All threads that wait for something are woken, and most of them find nothing to do.
    WokenForNothing {
        /// What they wait for.
        object: String,
        /// How often a thread was woken, and how often for nothing.
        wakings: u64,
        /// See `wakings`.
        for_nothing: u64,
    },
    /// Sleeping.
    Timers,
    /// Threads sleep, look whether there is something to do, and sleep again.
    Polling {
        /// How many threads.
        threads: usize,
        /// How long they sleep each time, nanoseconds.
        every_ns: f64,
        /// The function in which they do.
        function: Option<String>,
    },
    /// Threads wait for what others do, and keep CPUs busy meanwhile.
    SpunWaits {
        /// Threads that do, on average.
        waiting: f64,
    },
    /// Spin locks, whose waiters keep CPUs busy that others want.
    Spinning,
    /// The program waits for work or for time: no limit.
    Idle {
        /// CPUs that it uses on average.
        busy: f64,
    },
    /// Requests wait in the program, though CPUs are free, for what is not visible.
    OpenRequests {
        /// Where they come in.
        port: String,
        /// How many are open on average.
        open: f64,
        /// How long each takes until its answer begins, nanoseconds.
        mean_ns: f64,
        /// The part of that in which no thread has read it.
        queued: f64,
        /// CPUs in use on average.
        busy: f64,
        /// Goroutines run.
        hidden: bool,
        /// Whom they wait for, and how many requests are open there, if that is most of them.
        asked: Option<(String, f64)>,
    },
    /// Goroutines wait for a lock, as samples show; the waits themselves are not visible.
    Goroutines {
        /// Its type, e.g. `sync.Mutex`.
        lock: String,
        /// The function that does so most.
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
        /// Goroutines run, and what they wait for is not visible.
        hidden: bool,
    },
    /// It does not come to its end.
    Deadlock {
        /// Who waits for what.
        stuck: Stuck,
    },
    /// What threads did is not known for most of the time, or the simulation ends in a deadlock that did not happen (0).
    NotKnown {
        /// The share of the time.
        missing: f64,
    },
    /// The prediction for the recorded machine is so much shorter than the recorded run that what limits it is not in it.
    Unexplained {
        /// Nanoseconds.
        predicted_ns: f64,
        /// Nanoseconds that the program took while it was awake.
        measured_ns: f64,
    },
    /// Threads wait for what may be a lock, whose operations were not recorded.
    LocksNotRecorded {
        /// The futex word that is waited for longest.
        word: String,
        /// How many threads wait for it on average, as recorded.
        waiting: f64,
        /// Most waits are for this word, and threads that wait for it end the waits of others: it is used as a lock is.
        is_lock: bool,
        /// They were recorded, but many were lost: who had a lock when is not known.
        is_lost: bool,
        /// The share of the program's CPU time that recording them would cost, if that was tried.
        cost: Option<f64>,
    },
    /// Nothing is computed.
    Nothing,
}

impl Kind {
    /// Whether it was found out what limits, or what probably does.
    pub fn is_known(&self) -> bool {
        !matches!(
            self,
            Kind::NotKnown { .. }
                | Kind::Unexplained { .. }
                | Kind::OpenRequests { asked: None, .. }
                | Kind::LocksNotRecorded { is_lock: false, .. }
        )
    }

    /// Whether it is waiting, or not known: what threads compute meanwhile is not in the way.
    pub fn is_wait(&self) -> bool {
        matches!(
            self,
            Kind::Idle { .. }
                | Kind::Timers
                | Kind::Polling { .. }
                | Kind::Device { .. }
                | Kind::LocksNotRecorded { .. }
                | Kind::Goroutines { .. }
        ) || !self.is_known()
    }

    /// Whether threads go on one after the other: one more computes at the same time as the others, and here it could not.
    pub(crate) fn is_one_at_a_time(&self) -> bool {
        matches!(
            self,
            Kind::Lock { .. } | Kind::Turns { .. } | Kind::CacheLine { .. } | Kind::LocksNotRecorded { .. }
        )
    }

    /// Its name in JSON.
    pub fn name(&self) -> &'static str {
        self.into()
    }
}
