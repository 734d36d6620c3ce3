//! A program: what threads do, without scheduling. It is a list of operations per thread, with CPU time as compute
//! lengths (VPPB's merged log; 1999, section 3). It is built from a timeline, or read from its JSON form.

mod answers;
mod background;
mod check;
mod compute;
mod error;
mod from_timeline;
pub mod json;
mod lock_replay;
mod machine;
mod measured;
pub(crate) mod naming;
mod notices;
mod operation;
mod own_clock;
mod polls;
mod recorded;
mod request_time;
mod run_breaks;
mod sampled;
mod spinning;
mod stopped_timers;
mod traffic;
mod walk;

pub use crate::words::quoted;
pub(crate) use answers::{ANSWERS, is_for_socket};
pub use compute::{ComputeFactors, ComputeTimes};
pub use error::ProgramError;
pub(crate) use from_timeline::from_timeline_with;
pub use lock_replay::DeadEnd;
pub use machine::cpu_run::cpu_run;
pub use machine::machine_facts::{DeviceFact, LineFact, LineThread, MachineFacts};
pub use machine::others::OtherUse;
pub use machine::placement::Move;
pub(crate) use measured::{Measured, Turn, words};
pub use naming::awaited_names::wait_of;
pub use naming::function_origin::{
    CODE_WITHOUT_A_FILE, FunctionOrigin, Runtime, is_start_up, is_unnamed, system_call_name,
};
pub use naming::lock_names::{bare_name, is_java_wait};
pub(crate) use naming::names::{BETWEEN_HOSTS, functions_used};
pub(crate) use naming::object_meaning::ObjectMeaning;
pub use naming::occurrences::{LockSection, Occurrences, WaitWords};
pub use operation::{EdgeId, FunctionRef, ObjectId, Operation, ThreadId};
pub use recorded::{
    AwaitedPart, GoroutineGroup, GoroutineWait, GoroutineWaits, GoroutineWork, KernelShare, LockWaits,
    ObjectKind, Primitive, PutBackUses, Queue, Recorded, RecordedObject, RecordedWait, Share, SharedLine,
    SupportWork, WaitStack, WaitedFor,
};
pub use request_time::{CauseKind, TimePart};
pub(crate) use run_breaks::RunBreaks;
pub use sampled::samples::{Place, PlaceId, Sample, Samples};
pub use traffic::{Endpoint, endpoints};
pub(crate) use traffic::{is_answered_at, socket_name};
pub(crate) use walk::{CallWalk, Walk, taking};

use crate::cpus::Cpus;
use crate::event::Overhead;
use crate::finding::{Finding, Trust};
use crate::time::Ticks;
use serde::{Deserialize, Serialize, Serializer};

/// A program: threads, and the names to which their operations refer.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Program {
    /// Functions by [`FunctionRef`]; names are unique.
    pub functions: Vec<Function>,
    /// Synchronization objects and devices by [`ObjectId`]; names are unique per program.
    pub objects: Vec<String>,
    /// Names of replayed wake edges by [`EdgeId`]. There may be fewer names than edges: an edge without a name is called `e`
    /// + number.
    pub edges: Vec<String>,
    /// The threads; their order decides ties.
    pub threads: Vec<Thread>,
    /// How far the program's recording can be trusted; the default for hand-written programs.
    pub trust: Trust,
    /// Cost of the program's recording, if known.
    pub overhead: Option<Overhead>,
    /// Findings made while the program was built from a recording.
    pub findings: Vec<Finding>,
    /// Recorded facts about the program's locks; empty for programs written by hand.
    pub locks: Vec<LockFact>,
    /// Recorded synchronization objects and waits; empty for hand-written programs.
    pub recorded: Recorded,
    /// Number of CPUs that the program could use when it was recorded ([`Program::recorded_on`]); `None` if not known,
    /// as for programs written by hand.
    pub recorded_cpus: Option<u32>,
    /// Facts about the recorded machine; `None` for hand-written programs.
    pub machine: Option<MachineFacts>,
    /// Read-write locks that prefer waiting writers to new and waiting readers, ascending.
    pub writers_first: Vec<ObjectId>,
    /// Samples of the compute time between the probes.
    pub samples: Samples,
}

/// Recorded facts about a lock, independent of the simulation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LockFact {
    /// The lock.
    pub object: ObjectId,
    /// Number of acquisitions; a condition wait counts as one of its mutex, too.
    pub acquisitions: u64,
    /// Number of acquisitions that had to wait.
    pub contended: u64,
    /// Total time for which threads waited for the lock.
    pub waited: Ticks,
    /// Total time for which threads held the lock.
    pub held: Ticks,
    /// For read-write locks: the part of these numbers that is for reading; the remainder is for writing. Zero for
    /// other locks.
    pub reading: LockSide,
}

/// One side of a read-write lock; see [`LockFact`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct LockSide {
    /// Number of acquisitions of this side.
    pub acquisitions: u64,
    /// Number of acquisitions of this side that had to wait.
    pub contended: u64,
    /// Total time that threads waited.
    #[serde(rename = "wait_ns", serialize_with = "in_ns")]
    pub waited: Ticks,
    /// Total time that threads held this side.
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
    /// Whether the function's probes were removed during the recording, so that later calls count for its callers.
    #[serde(default, rename = "folded", skip_serializing_if = "std::ops::Not::not")]
    pub probes_removed: bool,
    /// Whether the function had probes for only a part of the recording: there were more calls than are known.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub partly_counted: bool,
    /// File name of the function's binary, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub module: Option<String>,
    /// Known from samples only: it never had probes, so its calls are not known.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub sampled: bool,
    /// Its owner, by name, binary and location ([`Function::with_origin`]).
    #[serde(skip)]
    pub origin: FunctionOrigin,
}

/// One thread of a program.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Thread {
    /// Unique name.
    pub name: String,
    /// Its operations, in order.
    pub operations: Vec<Operation>,
    /// Its nice value, −20 to 19.
    pub nice: i8,
    /// Numbers of the CPUs that the thread may use; empty for all. A mask that all threads share, or that was set when
    /// the program started, is omitted, since it belongs to the recorded machine.
    pub cpus: Vec<u32>,
    /// The thread's process, such as `server/1234`; `None` if not known.
    pub process: Option<String>,
    /// The CPUs on which the thread computed when it was recorded, in order of operations; empty if not known.
    pub moves: Vec<Move>,
    /// Set if no thread waits for this one: then it ends together with another thread.
    pub background: Option<Background>,
}

/// How a background thread, for which no other thread waits, continues and ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Background {
    /// The thread whose end ends the background thread at any point: the first thread of its process.
    pub ends_with: ThreadId,
    /// When the background thread reaches `repeats_until`, it repeats its operations from this index on. These
    /// operations concern no other thread.
    pub repeats_from: u32,
    /// Index after the last repeated operation; `repeats_from` if it repeats none.
    pub repeats_until: u32,
}

impl Thread {
    /// Number of operations that the thread executes once; a background thread repeats those that follow.
    pub(crate) fn once(&self) -> usize {
        self.background.map_or(self.operations.len(), |background| background.repeats_from as usize)
    }
}

/// Prefix of the names of edges that end spinning.
pub(crate) const SPINNING: &str = "spinning #";

impl Program {
    /// The CPU counts among these for which the program can be predicted. Threads of several hosts stay on their hosts' CPUs, so
    /// only the recorded number remains.
    pub fn counts(&self, asked: &[Cpus]) -> Vec<Cpus> {
        let is_joined = self.machine.as_ref().is_some_and(|machine| machine.hosts > 0);
        let recorded = self.recorded_cpus.and_then(Cpus::count).filter(|_| is_joined);
        recorded.map_or_else(|| asked.to_vec(), |recorded| vec![recorded])
    }

    /// Sets the number of CPUs that the program could use when it was recorded: those of the machine, or fewer if the
    /// threads' masks allow fewer (`taskset`, a container).
    pub fn recorded_on(&mut self, machine_cpus: Option<u32>) {
        let allowed = self.machine.as_ref().and_then(|machine| machine.cpus_allowed);
        self.recorded_cpus = machine_cpus.map(|cpus| allowed.map_or(cpus, |allowed| allowed.min(cpus)));
    }

    /// The threads that other threads create.
    pub(crate) fn created(&self) -> impl Iterator<Item = ThreadId> + '_ {
        self.threads.iter().flat_map(|thread| &thread.operations).filter_map(|operation| match operation {
            Operation::Create(thread) => Some(*thread),
            _ => None,
        })
    }

    /// Whether the thread that waits for this edge keeps a CPU busy by polling, as recorded.
    pub fn is_spinning(&self, edge: EdgeId) -> bool {
        self.edges.get(edge.0 as usize).is_some_and(|name| name.starts_with(SPINNING))
    }

    /// Whether the program has an edge that ends spinning.
    pub(crate) fn has_spinning(&self) -> bool {
        self.edges.iter().any(|name| name.starts_with(SPINNING))
    }

    /// The name of an edge. Edges without one are called `e` + number, with underscores after the `e` if other names would be
    /// the same. For messages only, since it compares all names.
    pub fn edge_name(&self, edge: EdgeId) -> std::borrow::Cow<'_, str> {
        match self.edges.get(edge.0 as usize) {
            Some(name) => name.as_str().into(),
            None => format!("{}{}", self.unnamed_edge(), edge.0).into(),
        }
    }

    /// Prefix of the names of edges without a name.
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
