//! The types of a timeline: threads, their gap-free intervals, waits, wake-ups and function stacks.

use super::socket_requests::SocketRequest;
use super::stretches::Stretch;
pub use super::thread::wait::{External, Wait, Wake};
use super::thread_contexts::TraceStretch;
use crate::event::{
    Access, AddressFact, AwaitedFact, AwaitedThread, CodeFact, CpuRun, FunctionFact, FunctionId,
    GoroutineFact, HostFact, IdleWake, KernelLocks, LineTransfer, MappingFact, OtherPrograms, Overhead,
    Requests, SamplingFact, SyncObject,
};
use crate::finding::Finding;
use crate::time::{Nanos, Timestamp};
use probe_abi::{SampleReason, SyncFamily, SyncOperation};
use rustc_hash::FxHashSet;

/// All that happened between the start and the end of the window.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Timeline {
    /// First instant of the window.
    pub start: Timestamp,
    /// Last instant of the window.
    pub end: Timestamp,
    /// All threads that lived in the window: first those of the facts, then others in order of their first event.
    pub threads: Vec<Thread>,
    /// Wake-ups by recorded threads on their own behalf, in order of time.
    pub wakeups: Vec<Wakeup>,
    /// Wake-ups by messages from another host, ascending. Their time is when the message was sent; it ends the wait later.
    pub messages: Vec<u32>,
    /// The hosts of a joined recording; otherwise empty.
    pub hosts: Vec<HostFact>,
    /// Locks and other synchronization objects with recorded operations.
    pub locks: Vec<Lock>,
    /// Places where operations of a thread are missing.
    pub lock_holes: u64,
    /// Families of objects, each with its process, whose operations were no longer recorded from some time on; ascending.
    pub families_removed: Vec<(u32, SyncFamily)>,
    /// Families of objects, each with its process, some of whose operations were lost; ascending.
    pub lossy: Vec<(u32, SyncFamily)>,
    /// Processes of Go programs, ascending: Go's runtime decides which goroutine waits.
    pub go: Vec<u32>,
    /// The program has code of Rust's standard library, whose locks do not call the C library.
    pub rust: bool,
    /// Locks of [`Timeline::locks`] whose operations were estimated (put back).
    pub put_back: Vec<PutBack>,
    /// Finished synchronization operations, in order of their ends.
    pub lock_operations: Vec<LockOperation>,
    /// Facts about what was at the addresses in records.
    pub addresses: Vec<AddressFact>,
    /// Function table of the recording.
    pub functions: Vec<FunctionFact>,
    /// Functions that lost their probes during the recording because of their cost, ascending.
    pub probes_removed: Vec<FunctionId>,
    /// Functions that had probes for a part of the recording, ascending: more calls happened than were recorded.
    pub partly_probed: Vec<FunctionId>,
    /// Sampled stacks.
    pub stacks: Vec<Stack>,
    /// How stacks were sampled, if they were sampled.
    pub sampling: Option<SamplingFact>,
    /// Mappings of code in processes.
    pub mappings: Vec<MappingFact>,
    /// Names of code.
    pub code: Vec<CodeFact>,
    /// Functions that only wait, given by the user: patterns of names ([`crate::glob`]).
    pub spin: Vec<String>,
    /// Runs of the command on other numbers of CPUs, or on the same number.
    pub cpu_runs: Vec<CpuRun>,
    /// Functions that lost their probes at a user's request, ascending.
    pub asked_off: Vec<FunctionId>,
    /// The cost of the recording over the program's run, if known.
    pub overhead: Option<Overhead>,
    /// How long threads waited for locks of the kernel; `None`: not recorded.
    pub kernel_locks: Option<KernelLocks>,
    /// Requests over sockets; `None`: not counted.
    pub requests: Option<Requests>,
    /// Requests that recorded threads answered, in order of their answers, then those that were open at the end.
    pub socket_requests: Vec<SocketRequest>,
    /// Stretches in which threads worked for traces: by trace, then in order of their beginnings.
    pub traces: Vec<TraceStretch>,
    /// Files and other ends of sockets for which threads slept.
    pub awaited: Vec<AwaitedFact>,
    /// What goroutines of Go programs did.
    pub goroutines: Vec<GoroutineFact>,
    /// CPU time that other programs used; `None`: not measured.
    pub others: Option<OtherPrograms>,
    /// The time to wake a thread on an idle CPU, if measured.
    pub idle_wake: Option<IdleWake>,
    /// The time for an atomic change of a cache line, if measured.
    pub line_transfer: Option<LineTransfer>,
    /// The time between two ticks of the kernel's clock, ns, if known.
    pub tick_ns: Option<u64>,
    /// The tick's period, ns, if idle CPUs may wait for a tick before they take a waiting thread (see [`crate::event::Facts`]).
    pub idle_tick_ns: Option<u64>,
    /// Hundredths of a CPU that the program may use (see [`crate::event::Facts`]).
    pub cpu_quota: Option<u32>,
    /// The process that longpole started and held until the recording had begun.
    pub launched: Option<u32>,
    /// The sets of CPUs that the program's threads could use at the start, without duplicates: those of the machine, or
    /// set by `taskset`.
    pub first_cpus: Vec<Vec<u32>>,
    /// Process and address of futex words that are no thread's end although threads wait for them in that way.
    pub semaphores: FxHashSet<(u32, u64)>,
    /// Sums over the window, for findings.
    pub counts: Counts,
    /// Findings made while the timeline was built.
    pub findings: Vec<Finding>,
}

impl Timeline {
    /// Time at which the program's run begins: the window's start, or the release of a command that longpole started
    /// and held.
    pub fn began(&self) -> Timestamp {
        if self.launched.is_none() {
            return self.start;
        }
        let running = self.threads.iter().filter_map(|thread| {
            let is_running = |(.., state): &(_, _, State)| matches!(state, State::Running { .. });
            thread.spans().find(is_running).map(|(from, ..)| from)
        });
        running.min().unwrap_or(self.start).max(self.start)
    }

    /// The wait that a wake-up ended, with the waiting thread.
    pub(crate) fn ended_by(&self, wakeup: &Wakeup) -> Option<(&Thread, &Wait)> {
        let wakee = self.threads.get(wakeup.wakee as usize)?;
        Some((wakee, wakee.waits.get(wakeup.ended? as usize)?))
    }
}

/// One thread, identified by process, id and start time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Thread {
    /// Host process id.
    pub pid: u32,
    /// Host thread id; the last one if an exec changed it.
    pub tid: u32,
    /// Kernel start time, ns, 0 if not known.
    pub start_time_ns: u64,
    /// Last name known in the window; control characters replaced.
    pub comm: String,
    /// Birth, or the window's start. For a command that longpole started: when longpole let it run.
    pub start: Timestamp,
    /// Death, or the window's end.
    pub end: Timestamp,
    /// How the thread came into being.
    pub birth: Birth,
    /// Whether the thread died in the window.
    pub died: bool,
    /// Cover `start..end` without gap or overlap. Only a `Blocked` interval may be empty: a wait whose wake-up came before
    /// the thread was off its CPU.
    pub intervals: Vec<Interval>,
    /// The waits that `State::Blocked` points to, in order of time.
    pub waits: Vec<Wait>,
    /// What the thread did, in order of time.
    pub steps: Vec<Step>,
    /// Stretches between two places with probes, in order of their beginnings.
    pub stretches: Vec<Stretch>,
    /// Stacks open before any step: at the thread's start and after each exec, in order.
    pub base_stacks: Vec<BaseStack>,
    /// Its last nice value, if known.
    pub nice: Option<i8>,
    /// The CPUs that the thread could use at the end, ascending; empty if not known.
    pub cpus: Vec<u32>,
    /// Hits of function probes in the thread, in order of time; empty if the cost of a hit is not known.
    pub hits: Vec<Hit>,
    /// The thread's samples, in order of time.
    pub samples: Vec<StackSample>,
    /// The thread that this one waited for at the end, if that was read from memory.
    pub awaits: Option<AwaitedThread>,
    /// Number of the thread's `sched_yield` calls.
    pub yields: u64,
    /// Running time before each of these calls, summed.
    pub yielded: Nanos,
}

/// A sampled stack of a process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stack {
    /// Host process id.
    pub pid: u32,
    /// Time at which the stack was first recorded.
    pub time: Timestamp,
    /// User-space addresses, the innermost frame first.
    pub frames: Vec<u64>,
    /// Address of a word that the last instruction at this place used and that other threads may use, with its cache
    /// line, and the kind of access.
    pub changed: Option<(u64, Access)>,
    /// Set if a tick found the thread in the kernel.
    pub in_kernel: Option<InKernel>,
}

/// What the kernel computed on behalf of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct InKernel {
    /// The number of the system call; `None`: a page fault or an interrupt.
    pub call: Option<u32>,
}

/// Stands in [`StackSample`] for no stack.
pub const NO_STACK: u32 = u32::MAX;

/// A sample of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StackSample {
    /// Time of the sample.
    pub time: Timestamp,
    /// Index in [`Timeline::stacks`], or [`NO_STACK`].
    pub stack: u32,
    /// The reason for the sample.
    pub reason: SampleReason,
    /// The stack has further frames that are not known.
    pub truncated: bool,
}

/// A probe hit: the time that it took from the thread before and after its record.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Hit {
    /// Time of the record.
    pub time: Timestamp,
    /// Nanoseconds of the hit before the record.
    pub before_ns: u32,
    /// Nanoseconds of the hit after the record.
    pub after_ns: u32,
}

/// How a thread came into being.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Birth {
    /// Alive when the window began, or assumed to be.
    #[default]
    BeforeWindow,
    /// Created by the thread with this index in [`Timeline::threads`], at that thread's first step [`StepKind::Create`]
    /// for this one.
    By(u32),
    /// Born in the window; the creator is not known.
    Unknown,
}

/// A stretch of a thread's life, until the start of the next one or the thread's end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interval {
    /// First instant.
    pub start: Timestamp,
    /// The thread's state in this interval.
    pub state: State,
    /// Index of the thread's first step in this interval; if there is none, of the next step.
    pub first_step: u32,
}

/// The states of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// On a CPU, from a `Switch` to the thread until a `Switch` from it.
    ///
    /// `cpu` is `None` if the thread has no switch, and only its CPU time in /proc shows that it ran.
    Running {
        /// The CPU.
        cpu: Option<u16>,
    },
    /// Wants a CPU: pre-empted, or woken (`Waking`) and not yet switched to.
    Runnable,
    /// Off the CPU and not runnable, from a `Switch` with a sleeping state until the first `Waking`. Index in
    /// [`Thread::waits`].
    Blocked(u32),
    /// The state is not known.
    Unknown(UnknownReason),
}

/// Why a thread's state is not known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum UnknownReason {
    /// Records of this time were lost.
    Gap,
    /// Events contradict each other: some in between are missing.
    Contradiction,
    /// The thread was not listed at the start, nor was its birth recorded.
    NotListed,
    /// The thread has no record, and /proc did not show its state.
    NoEvidence,
}

/// An event in which a thread of the recording made another one runnable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wakeup {
    /// Time of the wake-up.
    pub time: Timestamp,
    /// Index of the waking thread.
    pub waker: u32,
    /// Index of the woken thread.
    pub wakee: u32,
    /// Index, in the woken thread's waits, of the wait that the wake-up ended; `None` if it ended none.
    pub ended: Option<u32>,
}

/// Something a thread did at an instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// Time of the step.
    pub time: Timestamp,
    /// What the thread did.
    pub kind: StepKind,
}

/// See [`Step`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StepKind {
    /// A function was entered.
    Enter(FunctionId),
    /// The function on top of the stack was left, or lost its probes.
    Leave,
    /// The thread woke another: index in [`Timeline::wakeups`].
    Wake(u32),
    /// The thread created another one: index in [`Timeline::threads`]. If the first wake-up of the child is outside the
    /// window, there is no thread yet: [`Thread::birth`] of the child decides.
    Create(u32),
    /// The thread joined another one that had already ended: index in [`Timeline::threads`]. Such joins are never
    /// recorded, but always put back (estimated).
    Join(u32),
    /// The thread has finished a synchronization operation: index in [`Timeline::lock_operations`].
    Operated(u32),
    /// From here on, some of the thread's synchronization operations are missing: the thread may have released any
    /// lock. The number of a hole is unique over all threads.
    Hole(u32),
}

/// A lock or another synchronization object of the recorded program.
///
/// After destruction or another initialization, or with another kind, the same address is another object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lock {
    /// Process that contains the lock.
    pub pid: u32,
    /// Its address there.
    pub address: u64,
    /// Kind of object.
    pub kind: SyncObject,
    /// Its first use: initialization, if that was recorded.
    pub first: FirstUse,
    /// Its operations were not recorded but estimated (put back) from waits, wake-ups and samples.
    pub put_back: bool,
}

/// Facts about a lock whose operations were put back.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct PutBack {
    /// Index in [`Timeline::locks`].
    pub lock: u32,
    /// The threads that use the lock hold it for this share of their running time, according to samples.
    pub share: f64,
    /// Two standard errors of `share`.
    pub error: f64,
    /// Acquisitions that waits and wake-ups show.
    pub seen: u64,
    /// Further acquisitions, added to reach the share.
    pub added: u64,
    /// Mean time held per acquisition, nanoseconds.
    pub hold_ns: u64,
}

/// The thread that first used an object, and where.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FirstUse {
    /// Time at which the first operation ended.
    pub time: Timestamp,
    /// Index of the thread.
    pub thread: u32,
    /// Return address of the call, 0 if not known.
    pub caller: u64,
}

/// Stands in [`LockOperation`] for no object.
pub const NO_OBJECT: u32 = u32::MAX;

/// A finished synchronization operation of one thread, from its beginning to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LockOperation {
    /// Time at which the call began; never after `ended`.
    pub began: Timestamp,
    /// Time at which the call returned.
    pub ended: Timestamp,
    /// Init: the initial count. Create, join, detach: the `pthread_t`.
    pub value: u64,
    /// Return address of the call.
    pub caller: u64,
    /// Index in [`Timeline::threads`].
    pub thread: u32,
    /// Index in [`Timeline::locks`], or [`NO_OBJECT`].
    pub object: u32,
    /// The mutex of a condition wait, else [`NO_OBJECT`].
    pub second: u32,
    /// 0 or an error number.
    pub outcome: i32,
    /// The kind of operation.
    pub operation: SyncOperation,
    /// Bits of `probe_abi::OperationFlags`.
    pub flags: u16,
    /// Whether operations of the same thread directly before this one are missing.
    pub after_hole: bool,
    /// Number of operations for which this one stands; mostly 1.
    pub times: u32,
}

/// Functions that were open before the recording could see their entries.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BaseStack {
    /// Index of the step before which the functions are pushed.
    pub first_step: u32,
    /// The time from which the functions are assumed to have been open.
    pub time: Timestamp,
    /// The functions, the innermost first.
    pub functions: Vec<FunctionId>,
}

/// Sums over a timeline.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Records read.
    pub events: u64,
    /// Records that were ignored because they are older than their predecessor.
    pub late: u64,
    /// Waits that ended with a recorded wake-up.
    pub wakes: u64,
    /// Waits that ended without a recorded wake-up.
    pub unmatched: u64,
    /// Wake-ups that ended no wait.
    pub spurious: u64,
    /// Waits cut by the window's edges.
    pub truncated_waits: u64,
    /// Places where events contradicted each other.
    pub contradictions: u64,
    /// Switches that the kernel did not report, and whose times follow from its count of CPU time.
    pub inferred: u64,
    /// Function exits that matched no entry.
    pub stray_exits: u64,
    /// Records known to be lost: by the loss counters or by the gaps, the larger number.
    pub lost: u64,
    /// The recording has no end, where the loss counters are: more records may be lost.
    pub maybe_more_lost: bool,
    /// Thread time in `State::Unknown`.
    pub unknown: Nanos,
    /// Processes forked by threads of the recording that have no further records.
    pub unfollowed: u64,
}

impl Thread {
    /// The thread's sampled stack at this instant and for this reason, if known.
    pub(crate) fn stack_at(&self, time: Timestamp, reason: SampleReason) -> Option<u32> {
        self.samples_at(time, reason).map(|sample| sample.stack).find(|stack| *stack != NO_STACK)
    }

    /// The thread's samples at this instant and for this reason.
    pub(crate) fn samples_at(
        &self,
        time: Timestamp,
        reason: SampleReason,
    ) -> impl Iterator<Item = &StackSample> {
        let from = self.samples.partition_point(|sample| sample.time < time);
        let at =
            self.samples.get(from..).unwrap_or_default().iter().take_while(move |sample| sample.time == time);
        at.filter(move |sample| sample.reason == reason)
    }

    /// Whether the thread has any interval or step. A thread without is no thread of the program.
    pub fn has_lived(&self) -> bool {
        !self.intervals.is_empty() || !self.steps.is_empty()
    }

    /// The intervals with their ends, as start, end and state.
    pub fn spans(&self) -> impl Iterator<Item = (Timestamp, Timestamp, State)> + '_ {
        self.spans_from(0)
    }

    /// The intervals from the one at index `first` on, as start, end and state.
    pub(crate) fn spans_from(
        &self,
        first: usize,
    ) -> impl Iterator<Item = (Timestamp, Timestamp, State)> + '_ {
        let rest = self.intervals.get(first..).unwrap_or_default();
        let ends = rest.iter().skip(1).map(|next| next.start).chain(std::iter::once(self.end));
        rest.iter().zip(ends).map(|(interval, end)| (interval.start, end, interval.state))
    }

    /// Total time in intervals whose state satisfies `pick`.
    pub fn time_in(&self, pick: impl Fn(State) -> bool) -> Nanos {
        let sum = self
            .spans()
            .filter(|(_, _, state)| pick(*state))
            .fold(0u64, |sum, (start, end, _)| sum.saturating_add(end.0.saturating_sub(start.0)));
        Nanos(sum)
    }

    /// Total running time.
    pub fn ran(&self) -> Nanos {
        self.time_in(|state| matches!(state, State::Running { .. }))
    }
}

const _: () = assert!(size_of::<Interval>() == 24);
const _: () = assert!(size_of::<Step>() == 16);
const _: () = assert!(size_of::<Hit>() == 16);
