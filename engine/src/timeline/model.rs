//! The types of a timeline: threads, their gap-free intervals, waits, wake-ups and function stacks.

pub use super::wait::{External, Wait, Wake};
use crate::event::{
    Access, AddressFact, AwaitedThread, CodeFact, CpuRun, FunctionFact, FunctionId, IdleWake, KernelLocks,
    LineTransfer, MappingFact, OtherPrograms, Overhead, Requests, SamplingFact, SyncObject,
};
use crate::finding::Finding;
use crate::time::{Nanos, Timestamp};
use probe_abi::{SampleReason, SyncFamily, SyncOperation};

/// What happened between the start and the end of the window.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Timeline {
    /// First instant of the window.
    pub start: Timestamp,
    /// Last instant of the window.
    pub end: Timestamp,
    /// All threads that lived in the window: those of the facts first, then in order of their first event.
    pub threads: Vec<Thread>,
    /// Wake-ups by tracked threads on their own behalf, in order of time.
    pub wakeups: Vec<Wakeup>,
    /// Locks and other synchronization objects with recorded operations.
    pub locks: Vec<Lock>,
    /// Places where operations of a thread are missing.
    pub lock_holes: u64,
    /// Families of objects whose uses were no longer recorded from some instant on, with the process; ascending.
    pub families_removed: Vec<(u32, SyncFamily)>,
    /// Families of objects of whose uses some were lost, with the process; ascending.
    pub lossy: Vec<(u32, SyncFamily)>,
    /// Processes of Go programs, ascending: what waits in them is decided in Go's runtime.
    pub go: Vec<u32>,
    /// There is code of Rust's standard library, whose locks are no calls of the C library.
    pub rust: bool,
    /// Locks of [`Timeline::locks`] whose operations were put back.
    pub put_back: Vec<PutBack>,
    /// Finished synchronization operations, in order of their ends.
    pub lock_operations: Vec<LockOperation>,
    /// What lies at addresses that the records name.
    pub addresses: Vec<AddressFact>,
    /// Function table of the recording.
    pub functions: Vec<FunctionFact>,
    /// Functions that lost their probes during the recording for what they cost, ascending.
    pub probes_removed: Vec<FunctionId>,
    /// Functions whose probes came after the start or went before the end, ascending: more calls than are known.
    pub partly_probed: Vec<FunctionId>,
    /// Stacks that samples found.
    pub stacks: Vec<Stack>,
    /// How stacks were sampled, if they were.
    pub sampling: Option<SamplingFact>,
    /// Where processes had code.
    pub mappings: Vec<MappingFact>,
    /// Names of code.
    pub code: Vec<CodeFact>,
    /// Functions that only wait, as the user says: patterns of names ([`crate::glob`]).
    pub spin: Vec<String>,
    /// Runs of the command on other numbers of CPUs, or on as many.
    pub cpu_runs: Vec<CpuRun>,
    /// Functions that lost their probes on request, ascending.
    pub asked_off: Vec<FunctionId>,
    /// What the recording cost, if that is known, over the length of the program's run.
    pub overhead: Option<Overhead>,
    /// How long threads waited for locks of the kernel; `None`: that was not recorded.
    pub kernel_locks: Option<KernelLocks>,
    /// Requests over sockets; `None`: they were not counted.
    pub requests: Option<Requests>,
    /// What other programs used of the CPUs; `None`: not measured.
    pub others: Option<OtherPrograms>,
    /// What waking a thread on an idle CPU takes, if that was measured.
    pub idle_wake: Option<IdleWake>,
    /// What an atomic change of a cache line takes, if that was measured.
    pub line_transfer: Option<LineTransfer>,
    /// The time between two ticks of the kernel's clock, ns, if known.
    pub tick_ns: Option<u64>,
    /// The same where idle CPUs wait for it (see [`crate::event::Facts`]).
    pub idle_tick_ns: Option<u64>,
    /// Hundredths of a CPU that the program might use (see [`crate::event::Facts`]).
    pub cpu_quota: Option<u32>,
    /// The process that was held until the recording had begun.
    pub launched: Option<u32>,
    /// The CPUs that its threads might use when it began, each set once: as set by the recorded machine, or
    /// by `taskset`.
    pub first_cpus: Vec<Vec<u32>>,
    /// Sums over the whole window.
    pub counts: Counts,
    /// What was noticed.
    pub findings: Vec<Finding>,
}

impl Timeline {
    /// When the program's run begins. A command that longpole started was held until everything was ready: its run begins when
    /// it goes on.
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
}

/// One thread, identified by process, id and start time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Thread {
    /// Host process id.
    pub pid: u32,
    /// Host thread id, the last one if an exec changed it.
    pub tid: u32,
    /// Kernel start time, ns, 0 if not known.
    pub start_time_ns: u64,
    /// Last name known in the window; control characters replaced.
    pub comm: String,
    /// Birth, or the window's start. For a command that longpole started: when it let it go on.
    pub start: Timestamp,
    /// Death, or the window's end.
    pub end: Timestamp,
    /// Where it came from.
    pub birth: Birth,
    /// Whether it ended in the window.
    pub died: bool,
    /// Covers `start..end` without gap or overlap. Only a `Blocked` interval may be empty: a wait whose wake-up
    /// came before the thread was off its CPU.
    pub intervals: Vec<Interval>,
    /// The waits that `State::Blocked` points to, in order of time.
    pub waits: Vec<Wait>,
    /// What the thread did, in order.
    pub steps: Vec<Step>,
    /// Stacks open before any step: at the thread's start and after each exec, in order.
    pub base_stacks: Vec<BaseStack>,
    /// Its nice value in the end, if known.
    pub nice: Option<i8>,
    /// The CPUs that it might use in the end, ascending; empty if not known.
    pub cpus: Vec<u32>,
    /// Hits of function probes in it, in order of time; none if their cost is not known.
    pub hits: Vec<Hit>,
    /// Samples of it, in order of time.
    pub samples: Vec<StackSample>,
    /// The thread that it waited for in the end, if memory named one.
    pub awaits: Option<AwaitedThread>,
    /// How often it gave its CPU to another thread by `sched_yield`, and how long it had it before, summed.
    pub yields: u64,
    /// See `yields`.
    pub yielded: Nanos,
}

/// A stack that samples found, of a process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stack {
    /// Host process id.
    pub pid: u32,
    /// When it was first recorded.
    pub time: Timestamp,
    /// User-space addresses, the innermost frame first.
    pub frames: Vec<u64>,
    /// Address of the word that the last instruction there had used, if others may use it or its line, and what it did.
    pub changed: Option<(u64, Access)>,
    /// What the thread did in the kernel, if it was there at a tick.
    pub in_kernel: Option<InKernel>,
}

/// What a thread computed in the kernel for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct InKernel {
    /// The number of the system call; `None`: a page fault or an interrupt.
    pub call: Option<u32>,
}

/// No stack, in [`StackSample`].
pub const NO_STACK: u32 = u32::MAX;

/// A thread was sampled with a stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StackSample {
    /// When.
    pub time: Timestamp,
    /// Index in [`Timeline::stacks`], or [`NO_STACK`].
    pub stack: u32,
    /// Why it was looked at.
    pub reason: SampleReason,
    /// The stack goes on beyond what is known.
    pub truncated: bool,
}

/// A probe was hit: what that took of the thread's time before and after the record of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Hit {
    /// Time of the record.
    pub time: Timestamp,
    /// Nanoseconds up to then.
    pub before_ns: u32,
    /// Nanoseconds from then on.
    pub after_ns: u32,
}

/// How a thread came to be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Birth {
    /// Alive when the window began, or taken to be.
    #[default]
    BeforeWindow,
    /// Created by the thread with this index in [`Timeline::threads`], at its first step [`StepKind::Create`]
    /// with this thread.
    By(u32),
    /// Born in the window; by whom is not known.
    Unknown,
}

/// A stretch of a thread's life, up to the start of the next one or the thread's end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interval {
    /// First instant.
    pub start: Timestamp,
    /// What the thread did.
    pub state: State,
    /// Index of the first of the thread's steps that belongs to this interval (or to a later one).
    pub first_step: u32,
}

/// What a thread was doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// On a CPU, from a `Switch` to it until a `Switch` from it. `None`: on one that never switched, known from
    /// /proc's CPU time only.
    Running {
        /// The CPU.
        cpu: Option<u16>,
    },
    /// Wants a CPU: pre-empted, or woken (`Waking`) and not yet switched to.
    Runnable,
    /// Off the CPU and not runnable, from a `Switch` with a sleeping state until the first `Waking`. Index in
    /// [`Thread::waits`].
    Blocked(u32),
    /// Not known.
    Unknown(UnknownReason),
}

/// Why a state is not known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum UnknownReason {
    /// Records of this time were lost.
    Gap,
    /// Events contradict each other: some in between are missing.
    Contradiction,
    /// The thread was neither listed at the start nor was its birth recorded.
    NotListed,
    /// There is no record of it, and /proc did not say.
    NoEvidence,
}

/// A thread of the recording made another one runnable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wakeup {
    /// When.
    pub time: Timestamp,
    /// Index of the waking thread.
    pub waker: u32,
    /// Index of the woken thread.
    pub wakee: u32,
    /// Index of the wait it ended in the woken thread's waits; `None` if it ended none.
    pub ended: Option<u32>,
}

/// Something a thread did at an instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// When.
    pub time: Timestamp,
    /// What.
    pub kind: StepKind,
}

/// See [`Step`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StepKind {
    /// A function was put on the stack.
    Enter(FunctionId),
    /// The function on top of the stack lost its probes.
    Leave,
    /// The thread woke another: index in [`Timeline::wakeups`].
    Wake(u32),
    /// The thread created another: index in [`Timeline::threads`]. A fork whose child was not woken in the window
    /// made no thread yet; the child's [`Thread::birth`] decides.
    Create(u32),
    /// The thread found that another one, which it joins, had ended: index in [`Timeline::threads`]. Not recorded, but put back.
    Join(u32),
    /// The thread has finished a synchronization operation: index in [`Timeline::lock_operations`].
    Operated(u32),
    /// From here on, some of the thread's synchronization operations are missing: it may have released whatever it
    /// held. Holes are numbered, those of all threads together.
    Hole(u32),
}

/// A lock or another synchronization object of the recorded program. One that is destroyed or initialized again is
/// another one from then on, and so is one of another kind at the same address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lock {
    /// Process that it is in.
    pub pid: u32,
    /// Its address there.
    pub address: u64,
    /// What it is.
    pub kind: SyncObject,
    /// Its first use: initialization, if that was recorded.
    pub first: FirstUse,
    /// Its operations were not recorded: they are put back from waits, wake-ups and samples.
    pub put_back: bool,
}

/// What is known of a lock whose operations were put back.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct PutBack {
    /// Index in [`Timeline::locks`].
    pub lock: u32,
    /// The part of their running time that the threads that use it have it, from samples.
    pub share: f64,
    /// Two standard errors of that.
    pub error: f64,
    /// Acquisitions that events show.
    pub seen: u64,
    /// Further ones, from the share.
    pub added: u64,
    /// How long it is held at a time, on average, nanoseconds.
    pub hold_ns: u64,
}

/// The thread that first used an object, and where.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FirstUse {
    /// When it was over.
    pub time: Timestamp,
    /// Index of the thread.
    pub thread: u32,
    /// Return address of the call, 0 if not known.
    pub caller: u64,
}

/// No object, in [`LockOperation`].
pub const NO_OBJECT: u32 = u32::MAX;

/// A finished synchronization operation, from its begin to its end in one thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LockOperation {
    /// When the call began; never after `ended`.
    pub began: Timestamp,
    /// When it came back.
    pub ended: Timestamp,
    /// Init operations: the count. Create, join, detach: the `pthread_t`.
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
    /// What it was.
    pub operation: SyncOperation,
    /// `probe_abi::OperationFlags` bits.
    pub flags: u16,
    /// Operations of the same thread before this one are missing.
    pub after_hole: bool,
    /// How many operations of this kind it stands for, 1 for most.
    pub times: u32,
}

/// Functions that were open before the recording could see them enter.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BaseStack {
    /// They are pushed before this step.
    pub first_step: u32,
    /// From when on they are taken to have been open.
    pub time: Timestamp,
    /// The functions, the innermost first.
    pub functions: Vec<FunctionId>,
}

/// Sums over a timeline.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Records read.
    pub events: u64,
    /// Records left out because they were older than the one before.
    pub late: u64,
    /// Waits that ended with a recorded wake-up.
    pub wakes: u64,
    /// Waits that ended without one.
    pub unmatched: u64,
    /// Wake-ups that ended no wait.
    pub spurious: u64,
    /// Waits cut by the window's edges.
    pub truncated_waits: u64,
    /// Places where events contradicted each other.
    pub contradictions: u64,
    /// Switches that the kernel did not report, with times from its count of CPU time.
    pub inferred: u64,
    /// Function exits that fitted no entry.
    pub stray_exits: u64,
    /// Records known to be lost: from the loss counters or the gaps, whichever says more.
    pub lost: u64,
    /// There may be more: the recording has no end, which has the loss counters.
    pub maybe_more_lost: bool,
    /// Thread time in `State::Unknown`.
    pub unknown: Nanos,
    /// Processes that threads of the recording made and that have no further records.
    pub unfollowed: u64,
}

impl Thread {
    /// Its sampled stack at this instant for this reason.
    pub(crate) fn stack_at(&self, time: Timestamp, reason: SampleReason) -> Option<u32> {
        let from = self.samples.partition_point(|sample| sample.time < time);
        let at = self.samples.get(from..).unwrap_or_default().iter().take_while(|sample| sample.time == time);
        at.filter(|sample| sample.reason == reason && sample.stack != NO_STACK)
            .map(|sample| sample.stack)
            .next()
    }

    /// Whether there is any record of it: a thread without one is no thread of the program.
    pub fn has_lived(&self) -> bool {
        !self.intervals.is_empty() || !self.steps.is_empty()
    }

    /// The intervals with their ends: start, end, state.
    pub fn spans(&self) -> impl Iterator<Item = (Timestamp, Timestamp, State)> + '_ {
        let ends = self.intervals.iter().skip(1).map(|next| next.start).chain(std::iter::once(self.end));
        self.intervals.iter().zip(ends).map(|(interval, end)| (interval.start, end, interval.state))
    }

    /// Time in intervals for which `pick` holds.
    pub fn time_in(&self, pick: impl Fn(State) -> bool) -> Nanos {
        let sum = self
            .spans()
            .filter(|(_, _, state)| pick(*state))
            .fold(0u64, |sum, (start, end, _)| sum.saturating_add(end.0.saturating_sub(start.0)));
        Nanos(sum)
    }

    /// How long it ran.
    pub fn ran(&self) -> Nanos {
        self.time_in(|state| matches!(state, State::Running { .. }))
    }
}

const _: () = assert!(size_of::<Interval>() == 24);
const _: () = assert!(size_of::<Step>() == 16);
const _: () = assert!(size_of::<Hit>() == 16);
