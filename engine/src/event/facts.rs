//! Facts that do not come from the event stream: threads at the start of the window, the function table,
//! losses. Serializable because the session file stores them.

use super::access::Access;
use super::code::CodeFact;
use super::cpu_run::CpuRun;
use super::futex::{AwaitedThread, FutexFact};
use super::kernel_locks::KernelLocks;
use super::left_out::LeftOut;
use super::loss::LossCounts;
use super::module::ModuleFact;
use super::other_programs::OtherPrograms;
use super::overhead::{HitCosts, IdleWake, LineTransfer, OperationsTried, Overhead};
use super::requests::Requests;
use super::sampling::{SampleCounts, SamplingFact};
use crate::json::is_zero;
use serde::{Deserialize, Serialize};

/// Number of a function in the recording's function table; the same number as in the kernel's records.
pub type FunctionId = u32;

/// Everything in a recording except its kernel records.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Facts {
    /// First instant from which on events are complete (`CLOCK_MONOTONIC` nanoseconds).
    pub start_ns: u64,
    /// Processes recorded at the start.
    pub processes: Vec<ProcessFact>,
    /// Threads alive at the start.
    pub threads: Vec<ThreadFact>,
    /// Functions that have (or had) probes. `FunctionFact::id` is the key, the list may have holes.
    pub functions: Vec<FunctionFact>,
    /// What lies at addresses that the records name: synchronization objects and the places that used them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub addresses: Vec<AddressFact>,
    /// What a hit of a function probe costs here; it is taken out of compute time. `None`: it stays in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hit_costs: Option<HitCosts>,
    /// What waking a thread on an idle CPU takes, measured on this machine. `None`: not measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idle_wake: Option<IdleWake>,
    /// What an atomic change of a cache line takes, measured on this machine. `None`: not measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line_transfer: Option<LineTransfer>,
    /// How often the kernel looks whether a slice is over: the time between two ticks of its clock, ns.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tick_ns: Option<u64>,
    /// The same where this kernel's idle CPUs ask the others for waiting threads by chance only, and look again at the
    /// next tick. `None`: they take a waiting thread at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idle_tick_ns: Option<u64>,
    /// Hundredths of a CPU that its control groups let the program use when recording began: a container's limit
    /// (`cpu.max`). `None`: no limit, or none that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_quota: Option<u32>,
    /// The process started for the recording: it is held until all is ready, a wait that is not its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub launched: Option<u32>,
    /// Binaries whose functions are probed: where they lay, and what of their symbols was missing.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub modules: Vec<ModuleFact>,
    /// How stacks were sampled; `None`: they were not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sampling: Option<SamplingFact>,
    /// Where the processes that were sampled had executable code: what addresses in stacks lie in.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub mappings: Vec<MappingFact>,
    /// Names of the code that stacks are made of.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub code: Vec<CodeFact>,
    /// Functions that only wait, as the user says: patterns of names.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub spin: Vec<String>,
    /// Runs of the command on other numbers of CPUs, or on as many.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub cpu_runs: Vec<CpuRun>,
    /// Known when the recording has ended in an orderly way.
    pub end: Option<WindowEnd>,
}

/// Executable code of a process, as it was mapped.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct MappingFact {
    /// Host process id (tgid).
    pub pid: u32,
    /// Since when at the latest (`CLOCK_MONOTONIC` nanoseconds); 0 if from the start on. A later one at the same
    /// addresses takes its place.
    #[serde(skip_serializing_if = "is_zero")]
    pub since_ns: u64,
    /// First address.
    pub start: u64,
    /// First address after it.
    pub end: u64,
    /// Offset in the file of `start`.
    pub file_offset: u64,
    /// Path, as the process saw it; `[vdso]` and the like where there is no file, empty for unnamed memory.
    pub path: String,
    /// Its build-id, lower-case hexadecimal, as far as it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub build_id: Option<String>,
}

/// What lies at an address of a process. A process that runs another program from some instant on has new facts from
/// then on.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct AddressFact {
    /// Host process id (tgid).
    pub pid: u32,
    /// The address there, as records have it: of an object, or the return address of a call.
    pub address: u64,
    /// Since when it is so (`CLOCK_MONOTONIC` nanoseconds): when the process began to run this program; 0 if it ran it
    /// from the start on.
    #[serde(skip_serializing_if = "is_zero")]
    pub since_ns: u64,
    /// Data: the variable with the offset in it, e.g. `queue_lock` or `table+0x40`. Code: the function.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Code: `file:line` of the call, if debug information gives it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub location: Option<String>,
    /// Path of the binary that it lies in, as the process saw it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub module: Option<String>,
    /// That binary's build-id, lower-case hexadecimal.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub build_id: Option<String>,
    /// The address as that binary counts: names can be found later, too.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub linked: Option<u64>,
}

/// One process.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ProcessFact {
    /// Host process id (tgid).
    pub pid: u32,
    /// Short name.
    pub comm: String,
    /// Path of the executable, as the process sees it.
    pub executable: String,
    /// Its ids in the PID namespaces below the first, its own last; empty: it is in the first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub inner_pids: Vec<u32>,
}

/// One thread at the start of the window, read from /proc.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ThreadFact {
    /// Host thread id.
    pub tid: u32,
    /// Host process id (tgid).
    pub pid: u32,
    /// Kernel start time of the thread in ns since boot, 0 if not known: distinguishes reused ids.
    pub start_time_ns: u64,
    /// Name of the thread.
    pub comm: String,
    /// What it was doing when /proc was read.
    pub state: ThreadState,
    /// When /proc was read (`CLOCK_MONOTONIC` nanoseconds); later than `Facts::start_ns`.
    pub seen_ns: u64,
    /// CPU time it had used by then (/proc schedstat), ns, if readable.
    pub cpu_time_ns: Option<u64>,
    /// Its nice value, if readable.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nice: Option<i8>,
    /// The CPUs that it may use, ascending; empty: not known.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub cpus: Vec<u32>,
    /// The thread that it waits for, if the recording's end showed one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub awaits: Option<AwaitedThread>,
    /// What earlier events proved about it at `Facts::start_ns`. Set by a sliding window; /proc cannot know it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before: Option<Box<ThreadBefore>>,
}

/// A thread's state at the start of a window that has moved on: what the events before it proved.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ThreadBefore {
    /// What it was doing.
    pub condition: Condition,
    /// A waking was recorded, but it is not yet known which sleep it ends, if any.
    pub woken: bool,
    /// The futex that it waits for, or was about to at the time of that waking.
    pub futex: Option<FutexFact>,
    /// It waits for a CPU because it was pre-empted, not because it was woken.
    pub preempted: bool,
    /// Its exit was recorded, but not yet the last switch that takes it off its CPU.
    pub exiting: bool,
    /// Function records were lost: a return without an entry proves nothing about the time before.
    pub functions_lost: bool,
    /// Its stacks with their open frames, the first one first; more than one after signals on a stack of their
    /// own, or with coroutines.
    pub stacks: Vec<StackFact>,
    /// Indices in `stacks` of those that were active, the caller's first.
    pub active_stacks: Vec<u32>,
}

/// See [`ThreadBefore::condition`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Condition {
    /// No event since events became complete; the first one will tell.
    #[default]
    Unseen,
    /// As `Unseen`, after events that contradicted each other.
    UnseenSinceContradiction,
    /// As `Unseen`, after a gap.
    UnseenSinceGap,
    /// As `Unseen`, and it was neither listed at the start nor was its birth recorded.
    UnseenNotListed,
    /// Forked, but not yet woken for the first time.
    Forked,
    /// On this CPU.
    Running {
        /// The CPU.
        cpu: u16,
    },
    /// Waiting for a CPU.
    Runnable,
    /// Off the CPU and not runnable.
    Blocked {
        /// The kernel's `TASK_*` bits.
        task_state: u32,
    },
    /// In a gap.
    Gap,
}

/// One stack of a thread.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct StackFact {
    /// Highest recorded stack pointer: frames that were open all the time lie above.
    pub highest: u64,
    /// Last recorded stack pointer.
    pub latest: u64,
    /// Open frames, the outermost first.
    pub frames: Vec<FrameFact>,
}

/// One open frame.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FrameFact {
    /// Function number.
    pub function: FunctionId,
    /// Stack pointer at its first instruction.
    pub stack_pointer: u64,
}

/// A thread's state as /proc gives it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ThreadState {
    /// On a CPU or waiting for one (`R`).
    Running,
    /// Asleep (`S`, `D`).
    Sleeping,
    /// Stopped or traced (`T`, `t`).
    Stopped,
    /// Could not be read.
    #[default]
    Unknown,
}

/// One probed function.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct FunctionFact {
    /// The number in the kernel's records.
    pub id: FunctionId,
    /// Demangled name, or `module+0xoffset` where there is none. Not necessarily unique.
    pub name: String,
    /// File name of the module it lies in.
    pub module: String,
    /// File offset of its first instruction.
    pub offset: u64,
    /// `file:line`, if debug information gives it.
    pub location: Option<String>,
    /// Whether its exits are probed too; if not, only the stack pointer tells when it ended.
    pub exits_probed: bool,
    /// The kernel has to step over its first instruction, which makes a hit more expensive ([`HitCosts::entry_stepped`]).
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub entry_stepped: bool,
    /// The same for every one of its exits ([`HitCosts::exit`]); otherwise they are taken to cost as little as an
    /// entry.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub exits_stepped: bool,
}

/// How the window ended, and the second opinion of /proc and the loss counters.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct WindowEnd {
    /// Last instant up to which events are complete (`CLOCK_MONOTONIC` nanoseconds).
    pub end_ns: u64,
    /// Threads alive at the end, with their CPU time by then.
    pub threads: Vec<ThreadFact>,
    /// Records that did not make it.
    pub loss: LossCounts,
    /// What the recording cost.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub overhead: Option<Overhead>,
    /// What became of samples, if there were any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub samples: Option<SampleCounts>,
    /// Synchronization operations that threads were in the middle of, or had been when they ended: what a thread waits
    /// for in a deadlock. Only of programs whose C library's functions were recorded from inside.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub pending: Vec<PendingOperation>,
    /// How long threads waited for locks of the kernel; `None`: that was not recorded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kernel_locks: Option<KernelLocks>,
    /// Requests over sockets; `None`: they were not counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requests: Option<Requests>,
    /// What other programs used of the CPUs; `None`: not measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub others: Option<OtherPrograms>,
    /// What the session file had no room for.
    #[serde(skip_serializing_if = "LeftOut::is_nothing")]
    pub left_out: LeftOut,
}

/// A synchronization operation that had not come back; the fields are those of [`probe_abi::Operation`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct PendingOperation {
    /// Host process id.
    pub pid: u32,
    /// Host thread id.
    pub tid: u32,
    /// When it began (`CLOCK_MONOTONIC` nanoseconds).
    pub began_ns: u64,
    /// Address of the object.
    pub object: u64,
    /// The mutex of a condition wait.
    pub second: u64,
    /// Return address of the call.
    pub caller: u64,
    /// A [`probe_abi::SyncOperation`] as a number.
    pub operation: u16,
}

/// Most frames that are kept of a stack, the innermost ones.
pub const MOST_FRAMES: usize = 127;

/// How many of the newest stacks later samples may refer to: after this many others, the same stack may get a
/// new number.
pub const STACKS_AT_ONCE: u32 = 1 << 16;

/// Something the user side did or noticed at a moment of the recording.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Note {
    /// When (`CLOCK_MONOTONIC` nanoseconds).
    pub time_ns: u64,
    /// What.
    pub kind: NoteKind,
}

/// See [`Note`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NoteKind {
    /// These functions lost their probes from here on: their time belongs to their callers.
    ProbesOff {
        /// Function numbers.
        functions: Vec<FunctionId>,
        /// Calls per second that were too many, per function, in the same order; 0: not because of a rate
        /// limit. Empty: because a user asked for it.
        rates: Vec<u64>,
    },
    /// These functions have probes from here on: there was room in the budget, or they are worth some.
    ProbesOn {
        /// Function numbers.
        functions: Vec<FunctionId>,
        /// They have just been put into this process, which had none of them before; `None`: wherever they were.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pid: Option<u32>,
    },
    /// A stack that samples name by its number from now on. It comes before the first of them.
    Stack {
        /// Its number, not 0. Numbers go up; none is used twice, and none [`STACKS_AT_ONCE`] or more below the latest.
        id: u32,
        /// The process, for the meaning of its addresses.
        pid: u32,
        /// User-space addresses, the innermost first: where it was, then where each call returns to; of a function that a
        /// signal interrupted, one more than where it was. At most [`MOST_FRAMES`].
        frames: Vec<u64>,
        /// It continues above the last one. A sample whose stack came later than itself lacks this.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        cut: bool,
    },
    /// Where this stack was taken, the last instruction had used a word of memory that several threads may use.
    Changed {
        /// The number of the stack.
        stack: u32,
        /// Its process, for the meaning of the address.
        pid: u32,
        /// Of the word, not 0.
        address: u64,
        /// What it did there.
        #[serde(default, skip_serializing_if = "Access::is_atomic")]
        access: Access,
    },
    /// Where this stack was taken, the thread computed in the kernel.
    InKernel {
        /// The number of the stack.
        stack: u32,
        /// The number of the system call; `None`: a page fault or an interrupt.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        call: Option<u32>,
    },
    /// Events of this process (0: of all) are incomplete from `time_ns` to `until_ns`.
    Gap {
        /// Process, 0 for all.
        pid: u32,
        /// CPU whose records are missing, `None` for any. A thread that ran on another CPU meanwhile is not
        /// affected.
        #[serde(default)]
        cpu: Option<u16>,
        /// End of the gap.
        until_ns: u64,
        /// Number of records known to be lost in it; 0 if only the probes were missing.
        lost: u64,
        /// Why.
        reason: GapReason,
    },
    /// Processes that ended before they got function probes: their calls are missing. As a [`GapReason::NotProbed`] of each,
    /// but a program that starts thousands of others in a second would write as many notes.
    EndedUnprobed {
        /// They began at [`Note::time_ns`] or later; each once.
        pids: Vec<u32>,
        /// All of them had ended by then (`CLOCK_MONOTONIC` nanoseconds).
        until_ns: u64,
    },
}

/// Why a stretch of the recording is incomplete.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GapReason {
    /// The ring was full: records of any kind are missing.
    RingFull,
    /// A new process or program had no function probes yet: only function calls are missing.
    ProbesNotYetAttached,
    /// A process got no function probes at all, because it ended too soon or there were too many: only function calls
    /// are missing, up to its end.
    NotProbed,
    /// A thread's ring was full: only synchronization operations are missing, the scheduler's records are whole.
    OperationsLost,
    /// A new process or program had no probes on its C library yet: only synchronization operations are missing.
    LibcNotYetProbed,
    /// Packets over the loopback device were not followed: that a thread of the program woke another one by such a packet
    /// was taken for the network's doing. `lost`: wake-ups that may have been so.
    PacketsNotFollowed,
    /// A process's synchronization functions of one family were called too often and lost their probes: only operations
    /// of that family are missing from here on.
    OperationsOff {
        /// A [`probe_abi::SyncFamily`] as a number.
        family: u8,
        /// They never had any probes, because of what a trial has shown; `None`: they had some.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tried: Option<OperationsTried>,
    },
}
