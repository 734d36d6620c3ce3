//! What a recording shows of objects and waits, as the program keeps it.

use super::waited_for::WaitedFor;
use crate::event::{SupportSubject, SyncObject};
use crate::program::others::OtherUse;
use crate::program::traffic::Endpoint;
use serde::{Deserialize, Serialize};
use std::fmt;

/// A smaller part of the CPU time changes little about how a program goes on more CPUs.
const MATTERS: f64 = 0.1;

/// See [`super`]. Empty for a hand-written program.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Recorded {
    /// Synchronization objects: first those with recorded operations, then futex words.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub objects: Vec<RecordedObject>,
    /// What threads slept for, the longest first, what was idle last.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub waits: Vec<RecordedWait>,
    /// Cache lines that several threads change together, the one where samples found most first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub lines: Vec<SharedLine>,
    /// What the kernel and a runtime compute for threads, by subject, that with the most samples first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub support: Vec<SupportWork>,
    /// How much of the functions' CPU time is in the kernel, those with the most samples first; empty if none is.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub in_kernel: Vec<KernelShare>,
    /// Requests over sockets, what is served first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub traffic: Vec<Endpoint>,
    /// Programs that were not recorded and had CPUs meanwhile, the largest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub others: Vec<OtherUse>,
    /// How long all threads slept at once, nanoseconds.
    #[serde(skip_serializing_if = "is_zero")]
    pub asleep_ns: u64,
}

/// A synchronization object of the recorded program.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct RecordedObject {
    /// Unique name; that of the program's object, if operations were recorded.
    pub name: String,
    /// What it is.
    pub kind: ObjectKind,
    /// Host process id.
    pub pid: u32,
    /// Its address there, e.g. `0x7f40`.
    pub address: String,
    /// The variable that it is, with an offset.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub variable: Option<String>,
    /// `file:line` of its first use, without folders.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_use: Option<String>,
    /// The function of its first use.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_function: Option<String>,
    /// The thread of its first use.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_thread: Option<String>,
    /// What it shares with all others of its kind that were first used on one line, if there are several: `at hash.c:12`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// All uses without a wait were recorded, too.
    pub uncontended_visible: bool,
    /// What a futex word is for, by the functions in which threads waited for it, else by who ended the waits; `None` if
    /// neither tells.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub primitive: Option<Primitive>,
    /// Uses without a wait were put back from samples.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub put_back: Option<PutBackUses>,
    /// How often a thread slept for it.
    pub waits: u64,
    /// How long threads slept for it, summed, nanoseconds.
    pub wait_ns: u64,
    /// How many of these waits ended on another word, to which the waiters had been moved (requeued).
    #[serde(skip_serializing_if = "is_zero")]
    pub moved: u64,
    /// Functions that waited, the most frequent first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub waiters: Vec<Share>,
    /// Functions that ended waits, the most frequent first; what was no thread of the recording in brackets.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub wakers: Vec<Share>,
    /// How many of the waits were ended by a thread that itself waits for it at other times, as it is with a lock.
    #[serde(skip_serializing_if = "is_zero")]
    pub by_waiters: u64,
    /// How many of the waits found nothing to do: the thread waited for it again at once.
    #[serde(skip_serializing_if = "is_zero")]
    pub for_nothing: u64,
    /// The CPU time that this took of those that woke and those that were woken, nanoseconds.
    #[serde(skip_serializing_if = "is_zero")]
    pub for_nothing_ns: u64,
    /// The longest queue of threads that waited at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queue: Option<Queue>,
}

/// What a recorded object is, as a text in JSON: `mutex`, `rwlock`, `spin lock`, `condition`, `barrier`, `semaphore`,
/// `once` or `futex`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub enum ObjectKind {
    /// It has recorded operations.
    Sync(SyncObject),
    /// A word, of which only the waits were recorded.
    Futex,
    /// Any other text, in a file written by hand.
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

/// What threads wait for at a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Primitive {
    /// That another thread releases it: a mutex, a read-write lock, a semaphore.
    Lock,
    /// That something happens: a condition, a barrier, a parked thread.
    Signal,
}

impl RecordedObject {
    /// Whether it is the condition with which Python's threads wait for their interpreter's lock.
    pub(crate) fn is_gil_condition(&self) -> bool {
        self.kind == ObjectKind::Sync(SyncObject::Condition) && self.name.contains("gil.cond")
    }

    /// Whether it is taken and released, or may be.
    pub fn may_be_acquired(&self) -> bool {
        use SyncObject as S;
        match self.kind {
            ObjectKind::Sync(S::Mutex | S::RwLock | S::SpinLock | S::Semaphore) => true,
            ObjectKind::Futex => self.primitive != Some(Primitive::Signal),
            _ => false,
        }
    }
}

/// A lock whose uses were put back: how much is known, and how much is estimated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct PutBackUses {
    /// The part of their running time that the threads that use it hold it, by samples.
    pub held_share: f64,
    /// Two standard errors of that.
    pub held_error: f64,
    /// Acquisitions that waits and wake-ups show.
    pub seen: u64,
    /// Acquisitions that were added.
    pub added: u64,
    /// How long it is held at a time, on average, nanoseconds.
    pub hold_ns: u64,
}

/// The longest queue for a lock: from when the first thread waited until none did.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Queue {
    /// The threads that waited when it was longest, in the order in which they came.
    pub waiters: Vec<String>,
    /// The thread that held the lock then, if known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub holder: Option<String>,
    /// How long the holder had had it by then, nanoseconds.
    pub held_ns: u64,
    /// When the first thread began to wait, nanoseconds after the recording's start.
    pub start_ns: u64,
    /// The longest time during which a thread waited without a pause, nanoseconds.
    pub length_ns: u64,
    /// How much of that was after the queue was longest: until it had dissolved, nanoseconds.
    pub dissolved_ns: u64,
}

/// One kind of wait.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct RecordedWait {
    /// What for, e.g. `pipe read`, `mutex lock`, `condition wait`.
    pub name: WaitedFor,
    /// The threads had nothing to do: they waited for work, and no recorded thread had any.
    pub idle: bool,
    /// How often.
    pub waits: u64,
    /// How long, summed over threads, nanoseconds; waits that were cut by the recording's edges as far as it goes.
    pub wait_ns: u64,
    /// The longest one, nanoseconds.
    pub longest_ns: u64,
    /// How many threads.
    pub threads: u64,
    /// What ended them, the most frequent first.
    pub ended_by: Vec<Share>,
    /// What threads were doing when they went to sleep: functions, the most frequent first. Only with samples.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub sleepers: Vec<Share>,
    /// What those were doing that ended them. Only with samples.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub wakers: Vec<Share>,
}

/// A cache line that several threads use and change at the same time. One CPU at a time can change it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SharedLine {
    /// The variables in it, with offsets, as far as they have names.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub variables: Vec<String>,
    /// Address of the first word that was used.
    pub address: String,
    /// The function that uses it most, standard ones counted for their callers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub function: Option<String>,
    /// Threads that use it.
    pub threads: u64,
    /// Those of them that change nothing in it.
    #[serde(skip_serializing_if = "is_zero")]
    pub readers: u64,
    /// Each changed word is one thread's own: only the line is shared.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_false: bool,
}

/// What the kernel or a runtime computes for threads of the program, of one subject. It counts as their CPU time.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SupportWork {
    /// What it is about.
    pub subject: SupportSubject,
    /// Its system calls, and page faults, those with the most samples first.
    pub calls: Vec<Share>,
    /// The function that causes most of it, standard ones counted for their callers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub function: Option<String>,
    /// The standard function that it calls for that, most often.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub via: Option<String>,
    /// The most threads of one process that cause it.
    pub threads: u64,
    /// Samples in it.
    pub samples: u64,
    /// Samples of all threads of the program, wherever they were.
    pub all: u64,
    /// How long threads waited for locks of the kernel in it; `None`: that was not recorded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lock_waits: Option<LockWaits>,
}

/// Waits for locks of the kernel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct LockWaits {
    /// How many.
    pub count: u64,
    /// For how long threads slept in them, or wanted a CPU, nanoseconds. The timeline has this as waits, too.
    pub slept_ns: u64,
    /// For how long they spun, nanoseconds: CPU time.
    pub spun_ns: u64,
    /// The longest of them, nanoseconds.
    pub longest_ns: u64,
    /// How long the threads lived that wait there, summed, nanoseconds.
    pub of_ns: u64,
}

impl LockWaits {
    /// Their part of those threads' time.
    pub fn share(&self) -> f64 {
        (self.slept_ns.saturating_add(self.spun_ns) as f64 / self.of_ns.max(1) as f64).min(1.0)
    }

    /// Whether threads sleep in them rather than spin.
    pub fn is_sleep(&self) -> bool {
        self.slept_ns > self.spun_ns
    }
}

/// How often the clock's ticks found a function in the kernel.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct KernelShare {
    /// Its name; standard functions count for their callers.
    pub function: String,
    /// Samples in the kernel.
    pub in_kernel: u64,
    /// All of its samples.
    pub samples: u64,
}

impl KernelShare {
    /// The part of its CPU time that is in the kernel.
    pub fn share(&self) -> f64 {
        (self.in_kernel as f64 / self.samples.max(1) as f64).min(1.0)
    }
}

impl SupportWork {
    /// Its part of the program's CPU time.
    pub fn share(&self) -> f64 {
        (self.samples as f64 / self.all.max(1) as f64).min(1.0)
    }

    /// Whether much of it changes what several threads share: one of them does at a time, and the more of them there are, the longer
    /// they wait.
    pub fn grows(&self) -> bool {
        self.subject == SupportSubject::Memory && self.threads > 1 && self.share() >= MATTERS
    }

    /// Its most frequent calls, in words.
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

/// A name, and how often.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Share {
    /// The thread or other cause.
    pub name: String,
    /// How often.
    pub count: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde wants a reference")]
fn is_zero(value: &u64) -> bool {
    *value == 0
}

/// The text of [`ObjectKind::Futex`].
const FUTEX: &str = "futex";

/// Most names in a list of shares.
const SHARES: usize = 8;

/// The most frequent names; equals by name, so that the answer depends on nothing else.
pub(super) fn shares<S: Into<String>>(counts: impl IntoIterator<Item = (S, u64)>) -> Vec<Share> {
    let mut all: Vec<Share> =
        counts.into_iter().map(|(name, count)| Share { name: name.into(), count }).collect();
    all.sort_by(|a, b| b.count.cmp(&a.count).then_with(|| a.name.cmp(&b.name)));
    all.truncate(SHARES);
    all
}
