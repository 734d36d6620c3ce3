//! Results: one row for each function, object and thread, with units. Times are nanoseconds.

use crate::cpus::Cpus;
use crate::finding::{Finding, Trust};
use serde::Serialize;

/// The parallelism of a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Parallelism {
    /// The processors that the run had; `None` if the recording does not say.
    pub cpus: Option<Cpus>,
    /// Whether this is the measured run, not a predicted one.
    pub measured: bool,
    /// Length of the run.
    pub elapsed_ns: u64,
    /// Time in which no processor was busy: threads waited, or only spun.
    pub nobody_busy_ns: u64,
    /// Time by the number of busy processors, 0 included; adds up to `elapsed_ns`. From 64 on, numbers that differ by a
    /// sixteenth at most share an entry with their middle, here and in all rows.
    pub levels: Vec<(u32, u64)>,
    /// Threads that lived.
    pub threads: u32,
    /// Samples that count in rows.
    pub samples: u64,
    /// CPU time that recording used inside the program's threads and that belongs to no function, ns; 0 if none was measured.
    pub recording_ns: u64,
    /// Number of threads for which the recording does not show on whose behalf they work; 0 for a predicted run.
    pub orphans: u32,
    /// Functions, then objects, then threads; in each, the most normalized time on their behalf first.
    pub rows: Vec<ParallelismRow>,
    /// How far the recording can be trusted.
    pub trust: Trust,
    /// Findings about the program and the run.
    pub findings: Vec<Finding>,
}

/// The kind of a row.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ParallelismRowKind {
    /// A function, or code outside of all functions.
    #[default]
    Function,
    /// An object that either one thread holds, or several threads that only read.
    Lock,
    /// A place where threads wait for each other.
    Barrier,
    /// Anything else that a thread waits for: a condition variable, a semaphore, an event, a device.
    Condition,
    /// A thread.
    Thread,
}

/// The kind of a row's object, derived from what threads do with it; in JSON by its name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, strum::IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
#[expect(missing_docs, reason = "the names say it")]
pub enum AwaitedObject {
    /// No object, or an object that no thread uses.
    #[default]
    #[strum(serialize = "")]
    None,
    Mutex,
    #[strum(serialize = "condition variable")]
    ConditionVariable,
    /// A lock whose operations were recorded, of any kind.
    Lock,
    #[strum(serialize = "read-write lock")]
    ReadWriteLock,
    #[strum(serialize = "spin lock")]
    SpinLock,
    Barrier,
    Semaphore,
    Event,
    Once,
    /// A timer, or a thread with nothing to do.
    Timer,
    Device,
    Futex,
}

impl AwaitedObject {
    /// Its name; empty for none.
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// The kind of row for an object of this kind.
    pub(super) fn kind(self) -> ParallelismRowKind {
        use AwaitedObject as A;
        match self {
            A::Mutex | A::Lock | A::ReadWriteLock | A::SpinLock => ParallelismRowKind::Lock,
            A::Barrier => ParallelismRowKind::Barrier,
            _ => ParallelismRowKind::Condition,
        }
    }
}

/// Times of one function, object or thread.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ParallelismRow {
    /// The kind of the row.
    pub kind: ParallelismRowKind,
    /// Its name; `None` for code outside of any function.
    pub name: Option<String>,
    /// `file:line` of a function, if known.
    pub location: Option<String>,
    /// The kind of the row's object.
    pub of: AwaitedObject,
    /// Whether the program's author cannot change the row: a function of the language or the C library, code without a
    /// name, or recording's own time.
    pub is_foreign: bool,
    /// Normalized processor time of the row itself: Σ processor time ÷ busy processors (1989, Equation 1).
    pub normalized_self_ns: u64,
    /// Normalized processor time with all work on the row's behalf.
    pub normalized_total_ns: u64,
    /// The part of `normalized_total_ns` that is from threads that the row created or woke.
    pub normalized_others_ns: u64,
    /// Half-width of the 95 % interval of `normalized_self_ns`; `None` if exact.
    pub error_self_ns: Option<f64>,
    /// Half-width of the 95 % interval of `normalized_total_ns`; `None` if exact.
    pub error_total_ns: Option<f64>,
    /// Elapsed time of the row itself by state, summed over threads.
    pub own: StateTimes,
    /// Elapsed time by state with all work on the row's behalf; distributions are empty.
    pub total: StateTimes,
    /// Calls of a function, accesses of an object, 1 for a thread; `None` if they were not recorded.
    pub calls: Option<u64>,
    /// `normalized_self_ns` by the number of busy processors.
    pub by_busy: Vec<(u32, u64)>,
    /// `normalized_total_ns` by the number of busy processors.
    pub total_by_busy: Vec<(u32, u64)>,
    /// For an object: time for each number of threads that waited for the object, nanoseconds.
    pub queue: Vec<(u32, u64)>,
    /// Callers, with the part of `normalized_total_ns` on behalf of each; the most first.
    pub callers: Vec<Link>,
    /// Callees, each with its time on this row's behalf; the most first. For an object, also functions that run while
    /// the object is held.
    pub callees: Vec<Link>,
}

/// A caller or callee of a row.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Link {
    /// Name of the caller or callee; `None` for code outside of any function.
    pub name: Option<String>,
    /// Kind of the caller or callee.
    pub kind: ParallelismRowKind,
    /// Number of recorded calls.
    pub calls: u64,
    /// Normalized time on the callee's behalf, for this caller.
    pub normalized_ns: u64,
}

/// Elapsed time by state (1989, Table 1).
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct StateTimes {
    /// Computing on a processor.
    pub busy: StateTime,
    /// Keeping a processor and only waiting.
    pub spinning: StateTime,
    /// Waiting without a processor.
    pub blocked: StateTime,
    /// Wanting a processor.
    pub ready: StateTime,
}

/// Time in a state.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct StateTime {
    /// Time of all threads together.
    #[serde(skip)]
    pub ns: u64,
    /// Average number of runnable threads (busy, spinning or ready) in this state; 0 if no time was spent in it.
    #[serde(rename = "average")]
    pub runnable: f64,
    /// Time by that number; the last one may stand for more, too.
    pub by_runnable: Vec<(u32, u64)>,
}

impl ParallelismRow {
    /// Average wait for each access of an object, ns: time blocked and spinning ÷ accesses (section 3.2).
    pub fn average_wait_ns(&self) -> Option<f64> {
        let waited = self.own.blocked.ns.saturating_add(self.own.spinning.ns);
        self.calls.filter(|calls| *calls > 0).map(|calls| waited as f64 / calls as f64)
    }

    /// Average number of threads waiting for an object while any waits; 0 if none ever did.
    pub fn queue_length(&self) -> f64 {
        let waited = self.queue.iter().filter(|(length, _)| *length > 0);
        let (sum, time) = waited.fold((0.0, 0.0), |(sum, time), &(length, ns)| {
            (sum + f64::from(length) * ns as f64, time + ns as f64)
        });
        if time > 0.0 { sum / time } else { 0.0 }
    }

    /// Average number of busy processors during work on the row's behalf, weighted by normalized time: processor time ÷
    /// normalized time. 0 without such work. Where spinning threads share processors, a part of one counts as one.
    pub fn busy_processors(&self) -> f64 {
        let sum: f64 = self.total_by_busy.iter().map(|&(level, ns)| f64::from(level) * ns as f64).sum();
        if self.normalized_total_ns == 0 { 0.0 } else { sum / self.normalized_total_ns as f64 }
    }
}
