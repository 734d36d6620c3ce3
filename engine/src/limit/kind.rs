//! The kinds of limits, with what is known of each.

use super::causes::unrecorded_locks::NotSimulated;
use super::goroutines_wait::GoroutinesWait;
use super::share_of::{FunctionShare, Meanwhile};
use crate::event::SupportSubject;
use crate::finding::Stuck;
use crate::json::number;
use crate::program::LockWaits;
use serde::Serialize;

/// The kinds of limits.
///
/// As JSON it is an object: `kind`, the variant's name, and its fields. Fields of several kinds that mean the same have the
/// same name.
#[derive(Clone, Debug, PartialEq, Serialize, strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum LimitKind {
    /// A lock, or several locks that were first used in one place.
    Lock {
        /// The lock's name; of several locks the name of the one with the longest waits.
        lock: String,
        /// Number of locks.
        locks: usize,
        /// Number of threads that wait for the lock, on average.
        waiting: f64,
        /// Number of threads that take the lock.
        threads: usize,
        /// The function that computes most while the lock is held, with its share of all computing under the lock.
        #[serde(flatten)]
        holder: Option<FunctionShare>,
    },
    /// Readers of a read-write lock come again and again, and keep a writer waiting.
    StarvedWriter {
        /// The lock.
        lock: String,
        /// The thread that waits longest to write.
        thread: String,
        /// Share of the time for which it waits.
        waiting: f64,
        /// The function that computes most while the lock is held, with its share of all computing under the lock.
        #[serde(flatten)]
        holder: Option<FunctionShare>,
    },
    /// The hand-over from one thread to the next: waking threads and putting them on CPUs.
    HandOver {
        /// The object that most waits are for, if one object has most of them.
        #[serde(skip_serializing_if = "Option::is_none")]
        object: Option<String>,
    },
    /// CPUs: with more of them the program is faster.
    Cpus {
        /// Threads that compute or are runnable, on average.
        #[serde(rename = "waiting")]
        wanting: f64,
        /// Goroutines want them, which are more than the threads that run them.
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        goroutines: bool,
    },
    /// The quota that control groups, such as a container's, set on the program's CPU time: without it the program is faster.
    Quota {
        /// The quota in hundredths of a CPU.
        #[serde(rename = "quota_percent")]
        hundredths: u32,
    },
    /// Threads that do the same are busy, and CPUs are free: there are too few threads.
    Threads {
        /// Number of threads that do the same.
        threads: usize,
        /// The function that these threads compute most.
        #[serde(skip_serializing_if = "Option::is_none")]
        function: Option<String>,
        /// Share of the time in which these threads compute or wait for a CPU.
        busy: f64,
    },
    /// All threads of a pool sleep during their work, while there is more work.
    Sleepers {
        /// Number of threads in the pool.
        threads: usize,
        /// The function that the pool's threads compute most.
        #[serde(skip_serializing_if = "Option::is_none")]
        function: Option<String>,
        /// Share of the time in which the pool's threads sleep.
        asleep: f64,
        /// The answers that the pool's threads wait for, if these waits take longer than their sleeps.
        #[serde(rename = "device", skip_serializing_if = "Option::is_none")]
        answers: Option<String>,
    },
    /// More threads than CPUs do the same and wait for each other: fewer threads are faster.
    TooManyThreads {
        /// Number of threads.
        threads: usize,
        /// The number of threads with which the program is faster.
        then: usize,
        /// The function that these threads compute most.
        #[serde(skip_serializing_if = "Option::is_none")]
        function: Option<String>,
    },
    /// One stretch in which one thread computes alone.
    Serial {
        /// Name of the thread that computes alone.
        thread: String,
        /// The function that the thread computes most in the stretch.
        #[serde(skip_serializing_if = "Option::is_none")]
        function: Option<String>,
        /// The stretch's length, or the sum of all stretches, nanoseconds.
        #[serde(serialize_with = "number")]
        length_ns: f64,
        /// Number of stretches.
        times: u64,
        /// Threads that compute at any time of the run.
        threads: usize,
    },
    /// One thread computes most of the time while others compute little.
    BusyThread {
        /// Name of the busy thread.
        thread: String,
        /// The function that the thread computes most.
        #[serde(skip_serializing_if = "Option::is_none")]
        function: Option<String>,
        /// The share of the time in which the thread computes.
        busy: f64,
    },
    /// Threads take turns: at any time only one of them computes, and that thread changes often. Each waits for the
    /// work of the thread before it, but for no known lock.
    Turns {
        /// Number of threads, or of processes.
        threads: usize,
        /// Whether each thread is the only one of its process.
        processes: bool,
        /// How often the computing thread changes; 0 if it is not known.
        changes: u64,
        /// What they wait for, with the function, if they do the same and wake each other.
        #[serde(skip_serializing_if = "Option::is_none")]
        waits: Option<String>,
    },
    /// Threads wait for each other at barriers, their ends or the ends of rounds, because some have more to do than others.
    Imbalance {
        /// The function that the thread with the most work computes most.
        #[serde(skip_serializing_if = "Option::is_none")]
        function: Option<String>,
        /// What they wait for, with the function, if threads that do the same wake each other.
        #[serde(skip_serializing_if = "Option::is_none")]
        waits: Option<String>,
        /// Number of rounds of work at whose ends threads wait; 0: they wait elsewhere, or for all of their work.
        #[serde(skip_serializing_if = "crate::json::is_zero")]
        rounds: u64,
    },
    /// One thread of a pipeline is busy while the threads before or after it wait.
    Stage {
        /// Name of the busy thread.
        thread: String,
        /// The function that the thread computes most.
        #[serde(skip_serializing_if = "Option::is_none")]
        function: Option<String>,
    },
    /// Waiting for a device or for another program.
    Device {
        /// The device's name.
        device: String,
        /// The file, or the other end of sockets, that most of the time is waited for.
        #[serde(skip_serializing_if = "Option::is_none")]
        of: Option<String>,
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
        /// CPU time of the same work on the largest number of CPUs, nanoseconds.
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
        /// The function that causes most of the support work.
        #[serde(skip_serializing_if = "Option::is_none")]
        function: Option<String>,
        /// The standard function that this function calls for the work.
        #[serde(skip_serializing_if = "Option::is_none")]
        via: Option<String>,
        /// Number of threads of one process that cause the work.
        threads: usize,
        /// How long these threads wait for kernel locks during the work; `None`: not recorded.
        #[serde(rename = "kernel_locks", skip_serializing_if = "Option::is_none")]
        lock_waits: Option<LockWaits>,
    },
    /// Permits of a semaphore, such as a pool's connections: all are in use, and threads wait for one.
    Permits {
        /// The semaphore.
        #[serde(rename = "object")]
        semaphore: String,
        /// Number of permits.
        permits: u32,
        /// Number of threads that use permits, and number that wait for one on average.
        threads: usize,
        /// See `threads`.
        waiting: f64,
    },
    /// All threads that wait for an object are woken, and most of them find nothing to do.
    WokenForNothing {
        /// The object that the threads wait for.
        object: String,
        /// Number of wake-ups, and number of those that found nothing to do.
        wakings: u64,
        /// See `wakings`.
        for_nothing: u64,
    },
    /// Threads of a pool are woken for each task, and that takes longer than the task.
    SmallTasks {
        /// Number of threads.
        threads: usize,
        /// The function that these threads compute most.
        #[serde(skip_serializing_if = "Option::is_none")]
        function: Option<String>,
        /// How often other threads wake them.
        wakings: u64,
        /// Their CPU time from one wake-up to the next, nanoseconds.
        #[serde(rename = "length_ns")]
        task_ns: u64,
    },
    /// Sleeps and timers that other work waits for.
    Timers {
        /// The function in which threads sleep most often, if known.
        #[serde(skip_serializing_if = "Option::is_none")]
        function: Option<String>,
    },
    /// Threads sleep, check whether there is something to do, and sleep again.
    Polling {
        /// Number of threads that poll.
        threads: usize,
        /// Length of each sleep (the median), nanoseconds.
        #[serde(rename = "length_ns", serialize_with = "number")]
        every_ns: f64,
        /// The longest sleep, if the sleeps of a retry grow, nanoseconds.
        #[serde(skip_serializing_if = "Option::is_none")]
        longest_ns: Option<f64>,
        /// The function in which the threads sleep.
        #[serde(skip_serializing_if = "Option::is_none")]
        function: Option<String>,
    },
    /// Threads wait for other threads and keep CPUs busy while they wait.
    SpunWaits {
        /// Threads that spin, on average.
        waiting: f64,
        /// The functions that other threads compute most meanwhile.
        functions: Vec<String>,
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
        /// Number of open requests, on average.
        open: f64,
        /// Mean time from a request until its answer begins, nanoseconds.
        #[serde(serialize_with = "number")]
        mean_ns: f64,
        /// The part of `mean_ns` before a thread reads the request.
        queued: f64,
        /// CPUs in use on average.
        busy: f64,
        /// The program runs goroutines.
        hidden: bool,
        /// The server whose answers the requests wait for, and the number of requests open there, if these explain the
        /// wait.
        #[serde(skip_serializing_if = "Option::is_none")]
        asked: Option<(String, f64)>,
        /// The largest known part of the requests' time, other than computing.
        #[serde(skip_serializing_if = "Option::is_none")]
        spent: Option<Meanwhile>,
    },
    /// Requests wait for other requests of the same server: they share a lock that the program makes itself.
    OtherRequests {
        /// The port at which the requests arrive.
        port: String,
        /// The kind of wait, and the functions in which most of the waits begin and end.
        wait: String,
        /// Share of the requests' time in such waits.
        #[serde(rename = "waiting", serialize_with = "number")]
        waits: f64,
        /// What the other requests' threads did meanwhile, the longest first.
        meanwhile: Vec<Meanwhile>,
    },
    /// All connections to another server have a request open, and more requests wait for one.
    Connections {
        /// The server.
        #[serde(rename = "object")]
        server: String,
        /// Number of connections, from their open requests and the part of the time in which they have one.
        connections: u32,
        /// How many requests, or threads, wait for a connection, on average.
        waiting: f64,
        /// The port at which the requests arrive; `None`: threads wait.
        #[serde(skip_serializing_if = "Option::is_none")]
        port: Option<String>,
        /// Connections have times without a request, so a number of requests at a time may be the limit, and not a number of
        /// connections: `connections` is the mean number of open requests.
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        probably: bool,
    },
    /// Requests lie unread, although all threads that answer have one each, which mostly sleep meanwhile.
    AnsweringThreads {
        /// Number of threads that answer.
        threads: u32,
        /// The port at which the requests arrive.
        port: String,
        /// How many more requests lie unread on average; for a blocked event loop, how many more are open.
        unread: f64,
        /// The answers of another server for which each of the threads waits in a call that blocks its event loop.
        #[serde(skip_serializing_if = "Option::is_none")]
        blocked_by: Option<String>,
    },
    /// The kernel drops new connections, since the queue of those that the program has not accepted is full. Clients try again
    /// after a second.
    Backlog {
        /// How many connections were dropped, for all programs in the network namespace.
        dropped: u64,
    },
    /// What goroutines wait for, as looks at Go's runtime show.
    GoroutinesWait(GoroutinesWait),
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
    /// The work itself: only less computing makes the program faster.
    Work {
        /// CPUs in use on average.
        busy: f64,
        /// Whether goroutines run, whose waits are not visible.
        hidden: bool,
    },
    /// The program does not end.
    Deadlock {
        /// The threads of the deadlock, and what each waits for.
        #[serde(skip)]
        stuck: Stuck,
    },
    /// Most of the threads' time is unknown, or the simulation ends in a deadlock that did not happen (`missing` is 0).
    NotKnown {
        /// The share of the time that is unknown.
        missing: f64,
    },
    /// Most of the recorded run is missing in the prediction for the recorded machine, so the prediction probably does
    /// not show the limit.
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
        /// Number of threads that wait for the word on average, as recorded.
        waiting: f64,
        /// The word is used as a lock is: most waits are for it, and threads that wait for it end each other's waits.
        is_lock: bool,
        /// Why it is unknown which thread had the lock at what time.
        why: NotSimulated,
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
                | LimitKind::OpenRequests { asked: None, spent: None, .. }
                | LimitKind::LocksNotRecorded { is_lock: false, .. }
        )
    }

    /// Whether no change of the program is simulated for this limit.
    pub fn is_not_simulated(&self) -> bool {
        matches!(
            self,
            LimitKind::Nothing
                | LimitKind::Deadlock { .. }
                | LimitKind::NotKnown { .. }
                | LimitKind::Unexplained { .. }
                | LimitKind::OpenRequests { .. }
                | LimitKind::Connections { .. }
                | LimitKind::OtherRequests { .. }
                | LimitKind::AnsweringThreads { .. }
                | LimitKind::Backlog { .. }
                | LimitKind::Goroutines { .. }
                | LimitKind::GoroutinesWait(_)
        )
    }

    /// Whether the limit is a wait or unknown: then it does not matter what threads compute at that time.
    pub fn is_wait(&self) -> bool {
        matches!(
            self,
            LimitKind::Idle { .. }
                | LimitKind::Timers { .. }
                | LimitKind::Polling { .. }
                | LimitKind::Device { .. }
                | LimitKind::LocksNotRecorded { .. }
                | LimitKind::Goroutines { .. }
                | LimitKind::GoroutinesWait(_)
                | LimitKind::Connections { .. }
                | LimitKind::OtherRequests { .. }
                | LimitKind::AnsweringThreads { .. }
                | LimitKind::Backlog { .. }
        ) || !self.is_known()
    }

    /// Whether one more thread could not compute at the same time, since only one thread makes progress, or no CPU is
    /// free for long.
    pub(crate) fn is_full(&self) -> bool {
        matches!(
            self,
            LimitKind::Cpus { .. }
                | LimitKind::Quota { .. }
                | LimitKind::TooManyThreads { .. }
                | LimitKind::SpunWaits { .. }
                | LimitKind::Lock { .. }
                | LimitKind::StarvedWriter { .. }
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
