//! What comes out: one row for each function, object and thread, with units. Times are nanoseconds.

use crate::cpus::Cpus;
use crate::finding::{Finding, Trust};
use serde::Serialize;

/// Where the parallelism of a run goes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Parallelism {
    /// The processors that it ran on; `None` if the recording does not say.
    pub cpus: Option<Cpus>,
    /// It is the run that was measured, not one that is predicted.
    pub measured: bool,
    /// How long it took.
    pub elapsed_ns: u64,
    /// How much of that no processor was busy: threads waited, or only spun.
    pub nobody_busy_ns: u64,
    /// Time by the number of busy processors, 0 included; adds up to `elapsed_ns`. From 64 on, numbers that
    /// differ by a sixteenth at most are joined, with their middle; this holds everywhere here.
    pub levels: Vec<(u32, u64)>,
    /// Threads that lived.
    pub threads: u32,
    /// Samples that rows were made of.
    pub samples: u64,
    /// CPU time that recording took of the program's own code and that belongs to no function, ns; 0 if none
    /// was measured.
    pub recording_ns: u64,
    /// Threads for which the recording does not show on whose behalf they work; 0 for a predicted run.
    pub orphans: u32,
    /// First functions, then objects, then threads; each by normalized time with all that is done on its behalf, the
    /// most first.
    pub rows: Vec<Row>,
    /// How far the recording can be trusted.
    pub trust: Trust,
    /// What was noticed.
    pub findings: Vec<Finding>,
}

/// What a row is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// A function, or what is outside of all.
    #[default]
    Function,
    /// Something that one thread has at a time, or several that only read.
    Lock,
    /// A place where threads wait for each other.
    Barrier,
    /// Anything else that a thread waits for: a condition variable, a semaphore, an event, a device.
    Condition,
    /// A thread.
    Thread,
}

/// What object a row is, by what threads do with it; in JSON by its name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, strum::IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
#[expect(missing_docs, reason = "the names say it")]
pub enum AwaitedObject {
    /// None, or one that no thread uses.
    #[default]
    #[strum(serialize = "")]
    None,
    Mutex,
    #[strum(serialize = "condition variable")]
    ConditionVariable,
    /// A lock of any kind, as it was recorded.
    Lock,
    #[strum(serialize = "read-write lock")]
    ReadWriteLock,
    #[strum(serialize = "spin lock")]
    SpinLock,
    Barrier,
    Semaphore,
    Event,
    Once,
    /// Time that passes by itself, or with nothing to do.
    Timer,
    Device,
    Futex,
}

impl AwaitedObject {
    /// Its name; empty for none.
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// What the row of such an object is.
    pub(super) fn kind(self) -> Kind {
        use AwaitedObject as A;
        match self {
            A::Mutex | A::Lock | A::ReadWriteLock | A::SpinLock => Kind::Lock,
            A::Barrier => Kind::Barrier,
            _ => Kind::Condition,
        }
    }
}

/// A row.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Row {
    /// What it is.
    pub kind: Kind,
    /// Its name; `None` for code outside of any function.
    pub name: Option<String>,
    /// `file:line` of a function, if known.
    pub location: Option<String>,
    /// What object it is.
    pub of: AwaitedObject,
    /// The program's author cannot change it: a function of the language or the C library, code without a name, what
    /// recording took.
    pub is_foreign: bool,
    /// Normalized processor time of its own: Σ processor time ÷ busy processors (1989, Equation 1).
    pub normalized_self_ns: u64,
    /// The same with everything done on its behalf.
    pub normalized_total_ns: u64,
    /// The part of that which threads did that it created or woke.
    pub normalized_others_ns: u64,
    /// Half-widths of the 95 % intervals; `None` if exact.
    pub error_self_ns: Option<f64>,
    /// See `error_self_ns`.
    pub error_total_ns: Option<f64>,
    /// Elapsed time in each state of its own: of all threads, summed.
    pub own: States,
    /// The same with everything done on its behalf; distributions are empty.
    pub total: States,
    /// Calls of a function, accesses of an object, 1 for a thread; `None` if they were not recorded.
    pub calls: Option<u64>,
    /// `normalized_self_ns` by the number of busy processors.
    pub by_busy: Vec<(u32, u64)>,
    /// `normalized_total_ns` by the number of busy processors.
    pub total_by_busy: Vec<(u32, u64)>,
    /// Of an object: time by the number of threads that waited for it.
    pub queue: Vec<(u32, u64)>,
    /// Its callers, with the part of `normalized_total_ns` that was for them; the most first.
    pub callers: Vec<Link>,
    /// What it called, with what that did for it; the most first. Of an object also what runs while it is held.
    pub callees: Vec<Link>,
}

/// One row called another.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Link {
    /// The other one; `None` for code outside of any function.
    pub name: Option<String>,
    /// What the other one is.
    pub kind: Kind,
    /// How often, as far as that was recorded.
    pub calls: u64,
    /// Normalized time of the callee, and all that was done on its behalf, for this caller.
    pub normalized_ns: u64,
}

/// Elapsed time by state (1989, Table 1).
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct States {
    /// It computed on a processor.
    pub busy: State,
    /// It kept a processor and only waited.
    pub spinning: State,
    /// It waited without a processor.
    pub blocked: State,
    /// It wanted a processor.
    pub ready: State,
}

/// Time in a state.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct State {
    /// How long, of all threads together.
    #[serde(skip)]
    pub ns: u64,
    /// Average number of runnable threads (busy, spinning or ready) meanwhile; 0 if it never was in this state.
    #[serde(rename = "average")]
    pub runnable: f64,
    /// Time by that number; the last one may stand for more ([`super::MOST_RUNNABLE`]).
    pub by_runnable: Vec<(u32, u64)>,
}

impl Row {
    /// Average wait for each access of an object, ns: time blocked and spinning ÷ accesses (section 3.2).
    pub fn average_wait_ns(&self) -> Option<f64> {
        let waited = self.own.blocked.ns.saturating_add(self.own.spinning.ns);
        self.calls.filter(|calls| *calls > 0).map(|calls| waited as f64 / calls as f64)
    }

    /// Average number of threads that wait for an object while any does; 0 if none ever did.
    pub fn queue_length(&self) -> f64 {
        let waited = self.queue.iter().filter(|(length, _)| *length > 0);
        let (sum, time) = waited.fold((0.0, 0.0), |(sum, time), &(length, ns)| {
            (sum + f64::from(length) * ns as f64, time + ns as f64)
        });
        if time > 0.0 { sum / time } else { 0.0 }
    }

    /// Average number of processors that were busy while it was, with all that was done on its behalf, weighted by
    /// normalized time: processor time ÷ normalized time. 0 if it never was. Where spinning threads share processors a
    /// part of one counts as one.
    pub fn busy_processors(&self) -> f64 {
        let sum: f64 = self.total_by_busy.iter().map(|&(level, ns)| f64::from(level) * ns as f64).sum();
        if self.normalized_total_ns == 0 { 0.0 } else { sum / self.normalized_total_ns as f64 }
    }
}
