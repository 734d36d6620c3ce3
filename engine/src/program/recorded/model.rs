//! Recorded objects and waits, as a program keeps them.

use super::goroutine_work::GoroutineWork;
use super::goroutines::GoroutineWaits;
use super::waited_for::WaitedFor;
use crate::event::{SupportSubject, SyncObject};
use crate::program::machine::others::OtherUse;
use crate::program::traffic::Endpoint;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Below this part of the CPU time, kernel work changes little about how a program scales with CPUs.
const MATTERS: f64 = 0.1;

/// Recorded facts about objects and waits; see [`super`]. Empty for a hand-written program.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Recorded {
    /// Synchronization objects: first those with recorded operations, then other futex words.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub objects: Vec<RecordedObject>,
    /// Waits by kind, the longest total first; waits for work come last.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub waits: Vec<RecordedWait>,
    /// Cache lines that several threads change together, in descending order of samples.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub lines: Vec<SharedLine>,
    /// Work of the kernel and of runtimes by subject, in descending order of samples.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub support: Vec<SupportWork>,
    /// Shares of functions' CPU time in the kernel, in descending order of samples; empty if there is none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub in_kernel: Vec<KernelShare>,
    /// Requests over sockets; those that the program served come first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub traffic: Vec<Endpoint>,
    /// Connections of clients that the kernel dropped because the queue of a listening socket was full.
    #[serde(skip_serializing_if = "is_zero")]
    pub dropped_connections: u64,
    /// Locks that goroutines wait for, judged by samples of what goroutines compute at that time; the most frequent
    /// first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub goroutines: Vec<GoroutineWaits>,
    /// What goroutines did and waited for, by process; empty: not known.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub goroutine_work: Vec<GoroutineWork>,
    /// Programs that were not recorded and used CPUs during the recording, the largest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub others: Vec<OtherUse>,
    /// Child processes of the program that were not recorded, together.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub children: Option<OtherUse>,
    /// Time in which all threads slept together, nanoseconds.
    #[serde(skip_serializing_if = "is_zero")]
    pub asleep_ns: u64,
}

/// A synchronization object of the recorded program.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct RecordedObject {
    /// Unique name; the name of the program's object if operations were recorded.
    pub name: String,
    /// Its kind.
    pub kind: ObjectKind,
    /// Host process id.
    pub pid: u32,
    /// Its address in the process, e.g. `0x7f40`.
    pub address: String,
    /// Its variable, possibly with an offset.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub variable: Option<String>,
    /// `file:line` of the object's first use, without folders.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_use: Option<String>,
    /// The function of the object's first use.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_function: Option<String>,
    /// The thread of the object's first use.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_thread: Option<String>,
    /// The part of the name that all objects first used on the same line share: `at hash.c:12`. `None` if there is only
    /// one such object.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// Whether uses without a wait were recorded, too.
    pub uncontended_visible: bool,
    /// The purpose of a futex word, judged by the functions that waited for it, else by the threads that ended waits;
    /// `None` if not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub primitive: Option<Primitive>,
    /// Estimated uses of the object, if its sections were put back (estimated from samples and waits).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub put_back: Option<PutBackUses>,
    /// Number of waits in which threads slept.
    pub waits: u64,
    /// Total time of the waits, nanoseconds.
    pub wait_ns: u64,
    /// Number of waits that ended on another word, to which waiters had been moved (requeued).
    #[serde(skip_serializing_if = "is_zero")]
    pub moved: u64,
    /// Functions that waited, in descending order of waits.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub waiters: Vec<Share>,
    /// What ended waits, in descending order: functions, or in brackets causes other than the recorded threads.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub wakers: Vec<Share>,
    /// Number of waits ended by a thread that waits for the object at other times, as for a lock.
    #[serde(skip_serializing_if = "is_zero")]
    pub by_waiters: u64,
    /// Number of wake-ups for nothing: the thread waited for the object again at once.
    #[serde(skip_serializing_if = "is_zero")]
    pub for_nothing: u64,
    /// CPU time that the wake-ups for nothing took from wakers and wakees, nanoseconds.
    #[serde(skip_serializing_if = "is_zero")]
    pub for_nothing_ns: u64,
    /// The longest queue of waiting threads.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queue: Option<Queue>,
}

/// The kind of a recorded object.
///
/// In JSON a text: `mutex`, `rwlock`, `spin lock`, `condition`, `barrier`, `semaphore`, `once` or `futex`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub enum ObjectKind {
    /// An object with recorded operations.
    Sync(SyncObject),
    /// A futex word with recorded waits only.
    Futex,
    /// Any other text, in a hand-written file.
    Other(String),
}

impl Default for ObjectKind {
    fn default() -> ObjectKind {
        ObjectKind::Other(String::new())
    }
}

impl From<String> for ObjectKind {
    fn from(text: String) -> ObjectKind {
        match text.parse() {
            Ok(object) => ObjectKind::Sync(object),
            Err(_) if text == FUTEX => ObjectKind::Futex,
            Err(_) => ObjectKind::Other(text),
        }
    }
}

impl From<ObjectKind> for String {
    fn from(kind: ObjectKind) -> String {
        kind.to_string()
    }
}

impl fmt::Display for ObjectKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ObjectKind::Sync(object) => object.name(),
            ObjectKind::Futex => FUTEX,
            ObjectKind::Other(text) => text,
        })
    }
}

/// What threads wait for in a futex word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Primitive {
    /// Another thread's release of a mutex, a read-write lock or a semaphore.
    Lock,
    /// An event: a condition, a barrier, a parked thread.
    Signal,
}

impl RecordedObject {
    /// Whether the object is the condition in which Python's threads wait for their interpreter's lock.
    pub(crate) fn is_gil_condition(&self) -> bool {
        self.kind == ObjectKind::Sync(SyncObject::Condition) && self.name.contains("gil.cond")
    }

    /// Whether threads acquire and release the object, as far as is known.
    pub fn may_be_acquired(&self) -> bool {
        use SyncObject as S;
        match self.kind {
            ObjectKind::Sync(S::Mutex | S::RwLock | S::SpinLock | S::Semaphore) => true,
            ObjectKind::Futex => self.primitive != Some(Primitive::Signal),
            _ => false,
        }
    }
}

/// Numbers of a lock whose uses were put back: known and estimated ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct PutBackUses {
    /// The threads that use the lock hold it for this share of their running time, according to samples.
    pub held_share: f64,
    /// Two standard errors of `held_share`.
    pub held_error: f64,
    /// Acquisitions that waits and wake-ups show.
    pub seen: u64,
    /// Acquisitions that were added by estimate.
    pub added: u64,
    /// Mean time held per acquisition, nanoseconds.
    pub hold_ns: u64,
}

/// The longest queue for a lock, from the first thread's wait until no thread waited.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Queue {
    /// Names of the waiting threads when the queue was longest, in order of arrival.
    pub waiters: Vec<String>,
    /// The thread that held the lock at that time, if known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub holder: Option<String>,
    /// Time for which the holder had held the lock when the queue was longest, nanoseconds.
    pub held_ns: u64,
    /// Begin of the first wait, nanoseconds after the recording's start.
    pub start_ns: u64,
    /// Time during which at least one thread waited for the lock, nanoseconds.
    pub length_ns: u64,
    /// The part of that after the queue was longest, nanoseconds.
    pub dissolved_ns: u64,
}

/// All waits of one kind, together.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct RecordedWait {
    /// The kind, e.g. `pipe read`, `mutex lock`, `condition wait`.
    pub name: WaitedFor,
    /// Whether threads waited for work, and no recorded thread sent any.
    pub idle: bool,
    /// Number of waits.
    pub waits: u64,
    /// Total time, nanoseconds. Waits cut off by the recording's edges count as far as they were recorded.
    pub wait_ns: u64,
    /// Time of the longest wait, nanoseconds.
    pub longest_ns: u64,
    /// Number of threads that waited.
    pub threads: u64,
    /// What ended the waits of this kind, in descending order of waits.
    pub ended_by: Vec<Share>,
    /// Functions in which threads went to sleep, in descending order of waits; only with samples.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub sleepers: Vec<Share>,
    /// Functions in which other threads ended the waits, in descending order; only with samples.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub wakers: Vec<Share>,
    /// The most frequent stacks of the sleeping threads; only with samples.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub stacks: Vec<WaitStack>,
    /// The files and other ends of sockets for which threads waited, the longest total time first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub of: Vec<AwaitedPart>,
}

/// Waits of one kind with one stack.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct WaitStack {
    /// The functions, the innermost first.
    pub functions: Vec<String>,
    /// Number of waits that were sampled with this stack.
    pub waits: u64,
}

/// Waits of one kind for one file, or for one other end of sockets.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct AwaitedPart {
    /// The file with its folder, `clients of port 80`, or the peer's address and port.
    pub name: String,
    /// Number of waits.
    pub waits: u64,
    /// Total time, nanoseconds.
    pub wait_ns: u64,
}

/// A cache line that several threads use and change together. Only one CPU at a time can change it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SharedLine {
    /// Variables in the line, with offsets, as far as they have names.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub variables: Vec<String>,
    /// Address of the first used word.
    pub address: String,
    /// The function that uses the line most; standard functions count for their callers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub function: Option<String>,
    /// Number of threads that use the line.
    pub threads: u64,
    /// Number of threads that use the line without changing it.
    #[serde(skip_serializing_if = "is_zero")]
    pub readers: u64,
    /// False sharing: each changed word belongs to one thread.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_false: bool,
}

/// Work of the kernel or a runtime for the program's threads, of one subject. It is part of their CPU time.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SupportWork {
    /// The subject.
    pub subject: SupportSubject,
    /// System calls and page faults of this subject, in descending order of samples.
    pub calls: Vec<Share>,
    /// The function that causes most of this work; standard functions count for their callers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub function: Option<String>,
    /// The standard function through which this work is most often called.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub via: Option<String>,
    /// Largest number of threads in one process that cause this work.
    pub threads: u64,
    /// Samples in this work.
    pub samples: u64,
    /// Samples of all threads of the program, anywhere.
    pub all: u64,
    /// Waits for locks of the kernel in this work; `None`: not recorded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lock_waits: Option<LockWaits>,
}

/// Waits for locks of the kernel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct LockWaits {
    /// Number of waits.
    pub count: u64,
    /// Time in these waits without spinning (asleep or runnable), nanoseconds. These are waits of the timeline, too.
    pub slept_ns: u64,
    /// Time of spinning in these waits, nanoseconds of CPU time.
    pub spun_ns: u64,
    /// Time of the longest wait, nanoseconds.
    pub longest_ns: u64,
    /// Total lifetime of the threads that do this work, nanoseconds.
    pub of_ns: u64,
}

impl LockWaits {
    /// Share of the threads' time that is spent in these waits.
    pub fn share(&self) -> f64 {
        (self.slept_ns.saturating_add(self.spun_ns) as f64 / self.of_ns.max(1) as f64).min(1.0)
    }

    /// Whether threads sleep longer in these waits than they spin.
    pub fn is_sleep(&self) -> bool {
        self.slept_ns > self.spun_ns
    }
}

/// Number of samples of a function, and of its samples in the kernel.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct KernelShare {
    /// Name of the function; standard functions count for their callers.
    pub function: String,
    /// Samples in the kernel.
    pub in_kernel: u64,
    /// All samples of the function.
    pub samples: u64,
}

impl KernelShare {
    /// The part of the function's CPU time in the kernel.
    pub fn share(&self) -> f64 {
        (self.in_kernel as f64 / self.samples.max(1) as f64).min(1.0)
    }
}

impl SupportWork {
    /// Part of the program's CPU time.
    pub fn share(&self) -> f64 {
        (self.samples as f64 / self.all.max(1) as f64).min(1.0)
    }

    /// Whether there is much of this work and it changes memory that several threads share. Only one thread at a time
    /// can do that, so each thread waits longer the more threads there are.
    pub fn grows(&self) -> bool {
        self.subject == SupportSubject::Memory && self.threads > 1 && self.share() >= MATTERS
    }

    /// Names of the most frequent calls of this work, as a phrase.
    pub fn most(&self) -> String {
        let most = self.calls.first().map_or(0, |call| call.count);
        let mut names = self.calls.iter().filter(|call| call.count.saturating_mul(10) >= most).take(3);
        let first = names.next().map_or_else(String::new, |call| call.name.clone());
        let rest: Vec<&str> = names.map(|call| call.name.as_str()).collect();
        match &rest[..] {
            [] => first,
            [last] => format!("{first} and {last}"),
            [middle, last, ..] => format!("{first}, {middle} and {last}"),
        }
    }
}

/// A name, and how often it occurs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Share {
    /// Name of a function, thread, call or other cause.
    pub name: String,
    /// The count.
    pub count: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde wants a reference")]
fn is_zero(value: &u64) -> bool {
    *value == 0
}

/// The text of [`ObjectKind::Futex`].
const FUTEX: &str = "futex";

/// Largest number of names in a list of shares.
const SHARES: usize = 8;

/// The names with the highest counts. Equal counts are ordered by name, so that the result is always the same.
pub(super) fn shares<S: Into<String>>(counts: impl IntoIterator<Item = (S, u64)>) -> Vec<Share> {
    let mut all: Vec<Share> =
        counts.into_iter().map(|(name, count)| Share { name: name.into(), count }).collect();
    all.sort_by(|a, b| b.count.cmp(&a.count).then_with(|| a.name.cmp(&b.name)));
    all.truncate(SHARES);
    all
}
