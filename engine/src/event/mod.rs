//! Recorded events in time order, and the facts that were recorded with them.
//!
//! Live capture, a session file and a generated session all enter the engine here, as a [`Recording`].

mod access;
mod awaited;
mod call;
mod code;
mod cpu_run;
mod facts;
mod futex;
mod goroutines;
mod host;
mod io_wait_names;
mod kernel_locks;
mod left_out;
mod loss;
pub mod merge;
mod module;
mod other_programs;
mod overhead;
mod queue;
mod read_write_lock;
mod requests;
mod sampling;
mod sequence;
mod support;
mod sync_effect;

pub use facts::{
    AddressFact, Condition, Facts, FrameFact, FunctionFact, FunctionId, GapReason, MOST_FRAMES, MappingFact,
    Note, NoteKind, PendingOperation, ProcessFact, STACKS_AT_ONCE, StackFact, ThreadBefore, ThreadFact,
    ThreadState, WindowEnd,
};

pub use access::Access;
pub use awaited::AwaitedFact;
pub use call::{CallKind, call_kind};
pub use code::{
    CodeFact, CodeMap, CodeNames, CodePlace, InlinedFact, LIBRARY, frame_address, is_jit_code,
    is_recording_library, jit_code, unnamed_code,
};
pub use cpu_run::{CpuRun, FunctionSamples};
pub use futex::{
    AwaitedThread, FUTEX_CALL, FutexFact, awaited_futex, futex_name, futex_of_sleeper, futex_of_wakee,
};
pub use goroutines::{GoroutineAct, GoroutineFact, GoroutineStart, GoroutineState};
pub use host::{HostFact, IDS_OF_A_HOST, MOST_HOSTS, host_of};
pub use io_wait_names::io_name;
pub use kernel_locks::{KernelLockWaits, KernelLocks};
pub use left_out::LeftOut;
pub use loss::LossCounts;
pub use merge::{DISORDER_NS, Merger, OrderCounts};
pub use module::ModuleFact;
pub use other_programs::{OtherProgram, OtherPrograms};
pub use overhead::{HitCost, HitCosts, IdleWake, LineTransfer, OperationsTried, Overhead};
pub(crate) use probe_abi::futex_operation;
pub use read_write_lock::{ReadWrite, read_write_wait, read_write_words};
pub(crate) use requests::UNIX;
pub use requests::{OpenRequest, RequestSums, Requests};
pub use sampling::{CallGraph, SampleCounts, SamplingFact};
pub use support::{SupportSubject, kernel_work, runtime_work};
pub use sync_effect::{Effect, SyncObject, effect, may_wait, meaning};

use probe_abi::Record;

/// A recording: the kernel's records in time order, and the facts.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Recording {
    /// State at the start of the window, function table, losses.
    pub facts: Facts,
    /// Kernel records in time order (see the release rule in `merge`).
    pub events: Vec<Record>,
    /// Changes of probes, stacks and gaps, noted by the user side, in time order.
    pub notes: Vec<Note>,
}
