//! Facts that do not come from the event stream: threads at the window's start, the function table, losses. Serializable,
//! since the session file stores them.

use super::access::Access;
use super::awaited::AwaitedFact;
use super::code::CodeFact;
use super::cpu_run::CpuRun;
use super::futex::{AwaitedThread, FutexFact};
use super::goroutines::GoroutineFact;
use super::host::HostFact;
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

/// All of a recording except its kernel records and notes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Facts {
    /// First instant from which events are complete (`CLOCK_MONOTONIC` nanoseconds).
    pub start_ns: u64,
    /// Processes recorded at the start.
    pub processes: Vec<ProcessFact>,
    /// Threads alive at the start.
    pub threads: Vec<ThreadFact>,
    /// Functions that have or had probes. The key is `FunctionFact::id`; ids may be missing.
    pub functions: Vec<FunctionFact>,
    /// What lies at addresses in records: a synchronization object, or a place in code that used one.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub addresses: Vec<AddressFact>,
    /// Cost of a hit of a function probe, to be subtracted from compute time. `None`: not known and not subtracted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hit_costs: Option<HitCosts>,
    /// Time to wake a thread on an idle CPU of this machine. `None`: not measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idle_wake: Option<IdleWake>,
    /// Time for an atomic change of a cache line on this machine. `None`: not measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line_transfer: Option<LineTransfer>,
    /// The time between two ticks of the kernel's clock, ns. At a tick, the kernel checks whether a time slice is over.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tick_ns: Option<u64>,
    /// The tick after which an idle CPU asks other CPUs for waiting threads again, ns, if the kernel's idle CPUs ask
    /// only sometimes. `None`: they take a waiting thread at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idle_tick_ns: Option<u64>,
    /// Hundredths of a CPU that control groups allowed the program when recording began, a container's limit (`cpu.max`).
    /// `None`: no known limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_quota: Option<u32>,
    /// The process that longpole started and held until all was ready: a wait that is not the program's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub launched: Option<u32>,
    /// Binaries with probed functions: their paths, and what is missing of their symbols.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub modules: Vec<ModuleFact>,
    /// How stacks were sampled; `None`: no stacks were sampled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sampling: Option<SamplingFact>,
    /// Executable mappings of sampled processes: the code behind addresses in stacks.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub mappings: Vec<MappingFact>,
    /// Names of the code in stacks.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub code: Vec<CodeFact>,
    /// Functions that only wait, given by the user: patterns of names.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub spin: Vec<String>,
    /// Runs of the command on other numbers of CPUs, or on the same number.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub cpu_runs: Vec<CpuRun>,
    /// The hosts, if this recording was joined from recordings of several hosts; otherwise empty.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<HostFact>,
    /// Known if the recording has ended in an orderly way.
    pub end: Option<WindowEnd>,
}

/// A mapping of executable code in a process.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct MappingFact {
    /// Host process id (tgid).
    pub pid: u32,
    /// Time at which longpole first saw the mapping (`CLOCK_MONOTONIC` nanoseconds); 0: at the start. A later mapping
    /// replaces this one where their addresses overlap.
    #[serde(skip_serializing_if = "is_zero")]
    pub since_ns: u64,
    /// First address.
    pub start: u64,
    /// First address after the mapping.
    pub end: u64,
    /// Offset in the file of `start`.
    pub file_offset: u64,
    /// Path of the mapped file, as the process saw it. Without a file: `[vdso]` and the like, or empty for unnamed
    /// memory.
    pub path: String,
    /// Build-id of the file, lower-case hexadecimal, if known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub build_id: Option<String>,
}

/// What lies at an address of a process. After an exec, the process has new facts of this kind.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct AddressFact {
    /// Host process id (tgid).
    pub pid: u32,
    /// Address in the records: of an object, or a return address.
    pub address: u64,
    /// When the process began to run this program (`CLOCK_MONOTONIC` nanoseconds); 0: it ran it from the start on.
    #[serde(skip_serializing_if = "is_zero")]
    pub since_ns: u64,
    /// Data: the variable, with an offset in it, e.g. `queue_lock` or `table+0x40`. Code: the function.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Code: `file:line` of the call, if debug information gives it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub location: Option<String>,
    /// Path of the binary that contains the address, as the process saw it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub module: Option<String>,
    /// Build-id of that binary, lower-case hexadecimal.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub build_id: Option<String>,
    /// The address in that binary's own numbers, so that names can be found later.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub linked: Option<u64>,
}

/// One recorded process.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ProcessFact {
    /// Host process id (tgid).
    pub pid: u32,
    /// Short name.
    pub comm: String,
    /// Path of the process's executable, as the process sees it.
    pub executable: String,
    /// The process's ids in PID namespaces below the first one, the innermost last. Empty: the process is in the first
    /// one.
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
    /// Its state when /proc was read.
    pub state: ThreadState,
    /// Time at which /proc was read (`CLOCK_MONOTONIC` nanoseconds); later than `Facts::start_ns`.
    pub seen_ns: u64,
    /// CPU time that the thread had used at `seen_ns` (/proc schedstat), ns, if readable.
    pub cpu_time_ns: Option<u64>,
    /// Its nice value, if readable.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nice: Option<i8>,
    /// The CPUs that the thread may use, ascending; empty: not known.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub cpus: Vec<u32>,
    /// The thread that this one waits for, if found at the recording's end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub awaits: Option<AwaitedThread>,
    /// What earlier events proved about the thread at `Facts::start_ns`. A sliding window sets it; /proc does not have
    /// it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before: Option<Box<ThreadBefore>>,
}

/// A thread's state where a sliding window begins, as earlier events proved it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ThreadBefore {
    /// The state.
    pub condition: Condition,
    /// A waking is recorded whose sleep is not known yet; it may end none.
    pub woken: bool,
    /// The futex that the thread waits for, or was about to wait for when it was woken.
    pub futex: Option<FutexFact>,
    /// The thread is runnable because it was pre-empted, not because it was woken.
    pub preempted: bool,
    /// The thread's exit was recorded, but not yet its last switch.
    pub exiting: bool,
    /// Function records were lost, so an exit without an entry proves nothing about earlier times.
    pub functions_lost: bool,
    /// The thread's stacks with their open frames. There are several with coroutines, or after signals on a stack of
    /// their own.
    pub stacks: Vec<StackFact>,
    /// Indices in `stacks` of the active stacks, the caller's first.
    pub active_stacks: Vec<u32>,
}

/// See [`ThreadBefore::condition`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Condition {
    /// No event since events became complete: the first one will show the state.
    #[default]
    Unseen,
    /// Like `Unseen`, after a contradiction.
    UnseenSinceContradiction,
    /// Like `Unseen`, after a gap.
    UnseenSinceGap,
    /// Like `Unseen`. The thread was not listed at the start, and its birth was not recorded.
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
    /// The thread's events are missing because of a gap.
    Gap,
}

/// One stack of a thread, with its open frames.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct StackFact {
    /// Highest recorded stack pointer. Frames that were always open are above it.
    pub highest: u64,
    /// Last recorded stack pointer.
    pub latest: u64,
    /// Open frames, the outermost first.
    pub frames: Vec<FrameFact>,
}

/// One open frame of a probed function.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FrameFact {
    /// Function number.
    pub function: FunctionId,
    /// Stack pointer at the function's first instruction.
    pub stack_pointer: u64,
}

/// A thread's state in /proc.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ThreadState {
    /// The thread is on a CPU or waiting for one (`R`).
    Running,
    /// Asleep (`S`, `D`).
    Sleeping,
    /// Stopped or traced (`T`, `t`).
    Stopped,
    /// Could not be read.
    #[default]
    Unknown,
}

/// One function with probes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct FunctionFact {
    /// The number in the kernel's records.
    pub id: FunctionId,
    /// Demangled name of the function, or `module+0xoffset` without one. Not always unique.
    pub name: String,
    /// File name of the function's module.
    pub module: String,
    /// Offset in the file of the function's first instruction.
    pub offset: u64,
    /// `file:line` of the function, if debug information has it.
    pub location: Option<String>,
    /// Whether the function's exits have probes. Without them only stack pointers show when a call ended.
    pub exits_probed: bool,
    /// Whether the kernel must single-step the function's first instruction, which makes a hit more expensive
    /// ([`HitCosts::entry_stepped`]).
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub entry_stepped: bool,
    /// Whether the kernel must single-step the instructions at the function's exits ([`HitCosts::exit`]). If not, an
    /// exit is assumed to cost as much as an entry.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub exits_stepped: bool,
}

/// The end of the window, with numbers from /proc and the loss counters to check the records.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct WindowEnd {
    /// Last instant up to which events are complete (`CLOCK_MONOTONIC` nanoseconds).
    pub end_ns: u64,
    /// Threads alive at the end, each with its CPU time.
    pub threads: Vec<ThreadFact>,
    /// Counts of records that were lost or not recorded on purpose.
    pub loss: LossCounts,
    /// The cost of the recording.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub overhead: Option<Overhead>,
    /// Counts of samples, if any were taken.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub samples: Option<SampleCounts>,
    /// Synchronization operations still in progress at the end, or at their thread's end: the waits of a deadlock. Only known
    /// for programs whose C library's functions were recorded from inside.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub pending: Vec<PendingOperation>,
    /// How long threads waited for locks of the kernel; `None`: not recorded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kernel_locks: Option<KernelLocks>,
    /// Requests over sockets; `None`: not counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requests: Option<Requests>,
    /// Files and other ends of sockets for which threads slept, those that were known first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub awaited: Vec<AwaitedFact>,
    /// What goroutines of Go programs did; empty: none were looked at.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub goroutines: Vec<GoroutineFact>,
    /// CPU time that other programs used; `None`: not measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub others: Option<OtherPrograms>,
    /// Data for which the session file had no room.
    #[serde(skip_serializing_if = "LeftOut::is_nothing")]
    pub left_out: LeftOut,
}

/// A synchronization operation that had not returned; fields as in [`probe_abi::Operation`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct PendingOperation {
    /// Host process id.
    pub pid: u32,
    /// Host thread id.
    pub tid: u32,
    /// Time at which the operation began (`CLOCK_MONOTONIC` nanoseconds).
    pub began_ns: u64,
    /// Address of the object.
    pub object: u64,
    /// Address of the mutex if the operation is a wait for a condition variable.
    pub second: u64,
    /// Return address of the call.
    pub caller: u64,
    /// A [`probe_abi::SyncOperation`] as a number.
    pub operation: u16,
}

/// Largest number of frames kept of a stack; the innermost ones are kept.
pub const MOST_FRAMES: usize = 127;

/// Number of the newest stacks that later samples may refer to. After this many others, the same stack gets a new number.
pub const STACKS_AT_ONCE: u32 = 1 << 16;

/// Something that the user side did or noticed at an instant of the recording.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Note {
    /// Time of the note (`CLOCK_MONOTONIC` nanoseconds).
    pub time_ns: u64,
    /// What the note reports.
    pub kind: NoteKind,
}

impl Note {
    /// The number of the sampled stack that the note is about.
    pub fn stack(&self) -> Option<u32> {
        match self.kind {
            NoteKind::Stack { id, .. }
            | NoteKind::Changed { stack: id, .. }
            | NoteKind::InKernel { stack: id, .. } => Some(id),
            _ => None,
        }
    }
}

/// See [`Note`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NoteKind {
    /// These functions have no probes from here on: their time counts for their callers.
    ProbesOff {
        /// Function numbers.
        functions: Vec<FunctionId>,
        /// Calls per second of each function, in the same order, if there were too many; 0: another reason. Empty: a
        /// user asked to remove the probes.
        rates: Vec<u64>,
    },
    /// These functions have probes from here on, because the budget allows that.
    ProbesOn {
        /// Function numbers.
        functions: Vec<FunctionId>,
        /// The process that has just got these probes for the first time; `None`: all processes.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pid: Option<u32>,
    },
    /// A stack, before the first sample that refers to its number.
    Stack {
        /// Its number, not 0. Numbers ascend and are unique; none is [`STACKS_AT_ONCE`] or more below the latest.
        id: u32,
        /// The process to which the addresses belong.
        pid: u32,
        /// User-space addresses, the innermost first: the instruction, then return addresses. For a function interrupted by a
        /// signal, the instruction plus one. At most [`MOST_FRAMES`].
        frames: Vec<u64>,
        /// Whether the stack has more frames than these. A sample recorded before its stack does not have this flag
        /// itself.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        cut: bool,
    },
    /// The last instruction before this stack was taken had used a word of memory that several threads may use.
    Changed {
        /// The number of the stack.
        stack: u32,
        /// Process of the address.
        pid: u32,
        /// Address of the word, not 0.
        address: u64,
        /// How the instruction used the word.
        #[serde(default, skip_serializing_if = "Access::is_atomic")]
        access: Access,
    },
    /// The thread was computing in the kernel when this stack was taken.
    InKernel {
        /// The number of the stack.
        stack: u32,
        /// The number of the system call; `None`: a page fault or an interrupt.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        call: Option<u32>,
    },
    /// Events of a process are incomplete from `time_ns` to `until_ns`.
    Gap {
        /// Process; 0 for all.
        pid: u32,
        /// CPU whose records are missing; `None` for any. A thread that ran on another CPU is not affected.
        #[serde(default)]
        cpu: Option<u16>,
        /// End of the gap.
        until_ns: u64,
        /// Number of records known to be lost; 0 if only probes were missing.
        lost: u64,
        /// The reason.
        reason: GapReason,
    },
    /// Processes that ended before they got function probes, so that their calls are missing.
    ///
    /// This one note stands for a [`GapReason::NotProbed`] of each process: a program may start thousands of processes
    /// in a second.
    EndedUnprobed {
        /// Their ids, each once. They began at [`Note::time_ns`] or later.
        pids: Vec<u32>,
        /// Time at which all these processes had ended (`CLOCK_MONOTONIC` nanoseconds).
        until_ns: u64,
    },
}

/// Why a stretch of the recording is incomplete.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GapReason {
    /// A ring was full: records of any kind are missing.
    RingFull,
    /// A new process or program had no function probes yet: only function calls are missing.
    ProbesNotYetAttached,
    /// A process never got function probes, since it ended too soon or there were too many: all its calls are missing.
    NotProbed,
    /// A thread's ring was full: only synchronization operations are missing; the scheduler's records are complete.
    OperationsLost,
    /// Recording synchronization operations from inside paused, to keep to the budget; the scheduler's records are complete.
    OperationsPaused,
    /// A new process or program had no probes on its C library yet: only synchronization operations are missing.
    LibcNotYetProbed,
    /// Packets over the loopback device were not followed, so wake-ups by a packet of the program's own threads count for the
    /// network. `lost`: number of wake-ups that may be such.
    PacketsNotFollowed,
    /// A process's synchronization functions of one family were called too often and lost their probes: operations of that
    /// family are missing from here on.
    OperationsOff {
        /// A [`probe_abi::SyncFamily`] as a number.
        family: u8,
        /// Result of the trial because of which the functions never got probes; `None`: they had probes and lost them.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tried: Option<OperationsTried>,
    },
}
