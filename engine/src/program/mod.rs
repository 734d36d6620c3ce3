//! What the threads do, with scheduling removed: per thread a list of operations whose compute lengths are CPU
//! time (VPPB's merged log; 1999, section 3). Built from a timeline, or read from its JSON form.

mod answers;
mod background;
mod busy_wait;
mod check;
mod compute;
mod cpu_run;
mod error;
mod from_timeline;
mod function_origin;
pub mod json;
mod kernel_share;
mod line_sharing;
mod lock_names;
mod lock_replay;
mod machine_facts;
mod machine_of;
mod measured;
pub(crate) mod names;
mod notices;
mod object_meaning;
mod occurrences;
mod operation;
mod others;
mod own_clock;
mod own_cpus;
mod placement;
mod polls;
mod recorded;
mod run_breaks;
mod sampled_code;
mod samples;
mod shared_lines;
mod spin_locks;
mod spins;
mod support_work;
mod ticks;
mod traffic;
mod walk;

pub use crate::words::quoted;
pub use compute::{ComputeFactors, ComputeTimes};
pub use cpu_run::cpu_run;
pub use error::ProgramError;
pub(crate) use from_timeline::from_timeline_with;
pub use function_origin::{
    CODE_WITHOUT_A_FILE, FunctionOrigin, Runtime, is_start_up, is_unnamed, system_call_name,
};
pub use lock_names::{bare_name, is_java_wait};
pub use lock_replay::DeadEnd;
pub use machine_facts::{DeviceFact, LineFact, LineThread, MachineFacts};
pub(crate) use measured::{Measured, Turn, words};
pub(crate) use names::functions_used;
pub(crate) use object_meaning::ObjectMeaning;
pub use occurrences::{LockSection, Occurrences, WaitWords};
pub use operation::{EdgeId, FunctionRef, ObjectId, Operation, ThreadId};
pub use others::OtherUse;
pub use placement::Move;
pub use recorded::{
    KernelShare, LockWaits, ObjectKind, Primitive, PutBackUses, Queue, Recorded, RecordedObject,
    RecordedWait, Share, SharedLine, SupportWork, WaitedFor,
};
pub(crate) use run_breaks::RunBreaks;
pub use samples::{Place, PlaceId, Sample, Samples};
pub use traffic::{Endpoint, endpoints};
pub(crate) use walk::{CallWalk, Walk, taking};

use crate::event::Overhead;
use crate::finding::{Finding, Trust};
use crate::time::Ticks;
use serde::{Deserialize, Serialize, Serializer};

/// A program: threads and the names their operations refer to.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Program {
    /// Functions by [`FunctionRef`]; names are unique.
    pub functions: Vec<Function>,
    /// Synchronization objects and devices by [`ObjectId`]; names are unique per program.
    pub objects: Vec<String>,
    /// Names of replayed wake edges by [`EdgeId`]. May be shorter than the number of edges: edges without a
    /// name are called `e` + number.
    pub edges: Vec<String>,
    /// Threads in list order; ties are broken by it.
    pub threads: Vec<Thread>,
    /// How far this program's recording can be trusted; default for a hand-written one.
    pub trust: Trust,
    /// What its recording cost, if that is known.
    pub overhead: Option<Overhead>,
    /// What was noticed while it was built from a recording.
    pub findings: Vec<Finding>,
    /// What was recorded of its locks; empty for a hand-written program.
    pub locks: Vec<LockFact>,
    /// What the recording shows of synchronization objects and waits; empty for a hand-written program.
    pub recorded: Recorded,
    /// CPUs that it could use when it was recorded ([`Program::recorded_on`]); `None` if that is not known, as for a
    /// hand-written one.
    pub recorded_cpus: Option<u32>,
    /// What the recording tells about that machine; `None` for a hand-written program.
    pub machine: Option<MachineFacts>,
    /// Read-write locks at which waiting writers go before new and waiting readers, ascending.
    pub writers_first: Vec<ObjectId>,
    /// What samples show of the compute time between the probes.
    pub samples: Samples,
}

/// What was recorded of a lock, independent of the simulation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LockFact {
    /// The lock.
    pub object: ObjectId,
    /// How often it was taken; each end of a condition wait counts.
    pub acquisitions: u64,
    /// How often it was not free.
    pub contended: u64,
    /// How long threads waited for it, summed.
    pub waited: Ticks,
    /// How long threads had it, summed.
    pub held: Ticks,
    /// Of a read-write lock: the part of all this that only read; the rest wrote. Zero for other locks.
    pub reading: LockSide,
}

/// One side of a read-write lock; see [`LockFact`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct LockSide {
    /// How often it was taken so.
    pub acquisitions: u64,
    /// How often it was not free for that.
    pub contended: u64,
    /// How long threads waited, summed.
    #[serde(rename = "wait_ns", serialize_with = "in_ns")]
    pub waited: Ticks,
    /// How long threads had it so, summed.
    #[serde(rename = "hold_ns", serialize_with = "in_ns")]
    pub held: Ticks,
}

fn in_ns<S: Serializer>(ticks: &Ticks, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(ticks.as_ns_f64())
}

/// A function of a program.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Function {
    /// Unique name.
    pub name: String,
    /// `file:line`, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub location: Option<String>,
    /// Whether its probes were removed during the recording, so that later calls count for its callers.
    #[serde(default, rename = "folded", skip_serializing_if = "std::ops::Not::not")]
    pub probes_removed: bool,
    /// It had its probes for a part of the recording, so that there were more calls than are known.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub partly_counted: bool,
    /// File name of the binary that it is in, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub module: Option<String>,
    /// Only samples know it: it never had probes, so nothing is known of its calls.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub sampled: bool,
    /// Whose it is, by all of that ([`Function::with_origin`]).
    #[serde(skip)]
    pub origin: FunctionOrigin,
}

/// One thread of a program.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Thread {
    /// Unique name.
    pub name: String,
    /// What it does, in order.
    pub operations: Vec<Operation>,
    /// Its nice value, −20 to 19.
    pub nice: i8,
    /// The CPUs that it may use, by their numbers from 0; empty for all. A mask that all threads share, or that was
    /// there when the program started, belongs to the recorded machine and is left out.
    pub cpus: Vec<u32>,
    /// Its process, as in `server/1234`; `None` if that is not known.
    pub process: Option<String>,
    /// On which CPUs it computed when it was recorded, ascending; empty if that is not known.
    pub moves: Vec<Move>,
    /// No thread waits for it: it ends with another thread.
    pub background: Option<Background>,
}

/// How a thread continues that no thread waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Background {
    /// It ends when this thread does, at any point: the first of its process.
    pub ends_with: ThreadId,
    /// If it gets there before that, it does its operations from this one on again: they concern no other thread.
    pub repeats_from: u32,
    /// Up to this one, without it; the same if it does nothing again.
    pub repeats_until: u32,
}

impl Thread {
    /// How many of its operations it does once; those that follow it repeats in the background.
    pub(crate) fn once(&self) -> usize {
        self.background.map_or(self.operations.len(), |background| background.repeats_from as usize)
    }
}

/// What the names of edges that end spinning start with.
pub(crate) const SPINNING: &str = "spinning #";

impl Program {
    /// Sets the CPUs that it could use when it was recorded: those of the machine, or fewer, where the masks of its threads
    /// left it fewer (`taskset`, a container).
    pub fn recorded_on(&mut self, machine_cpus: Option<u32>) {
        let allowed = self.machine.as_ref().and_then(|machine| machine.cpus_allowed);
        self.recorded_cpus = machine_cpus.map(|cpus| allowed.map_or(cpus, |allowed| allowed.min(cpus)));
    }

    /// Whether the thread that waits for an edge keeps a CPU busy by polling, as recorded.
    pub fn is_spinning(&self, edge: EdgeId) -> bool {
        self.edges.get(edge.0 as usize).is_some_and(|name| name.starts_with(SPINNING))
    }

    /// Whether there is such an edge.
    pub(crate) fn has_spinning(&self) -> bool {
        self.edges.iter().any(|name| name.starts_with(SPINNING))
    }

    /// The name of an edge; edges without a name are called `e` + number, with underscores after the `e` if need be to
    /// be unlike all others. Looks at all names: for messages.
    pub fn edge_name(&self, edge: EdgeId) -> std::borrow::Cow<'_, str> {
        match self.edges.get(edge.0 as usize) {
            Some(name) => name.as_str().into(),
            None => format!("{}{}", self.unnamed_edge(), edge.0).into(),
        }
    }

    /// What the names of edges without a name start with.
    fn unnamed_edge(&self) -> String {
        let mut start = String::from("e");
        let is_numbered = |name: &str, start: &str| {
            let digits = name.strip_prefix(start).unwrap_or("");
            !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
        };
        while self.edges.iter().any(|name| is_numbered(name, &start)) {
            start.push('_');
        }
        start
    }
}
