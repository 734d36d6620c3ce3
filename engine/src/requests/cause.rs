//! Causes of the parts of a request's latency.

use crate::program::{CauseKind, FunctionRef};
use crate::time::Timestamp;
use strum::IntoStaticStr;

/// A part of a request's path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathPart {
    /// First instant.
    pub from: Timestamp,
    /// End, exclusive; later than `from`.
    pub to: Timestamp,
    /// Index in [`crate::timeline::Timeline::threads`] of the thread that the cause is about.
    pub thread: u32,
    /// What the thread did during this part.
    pub cause: Cause,
    /// The lock that the request waited for during this part: `thread` held the lock, or kept its holder waiting. If
    /// there are several locks, it is the first one that the request itself waited for.
    pub lock: Option<LockRef>,
}

impl PathPart {
    /// The part's length, ns.
    pub fn length_ns(&self) -> u64 {
        self.to.0.saturating_sub(self.from.0)
    }
}

/// A lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum LockRef {
    /// A lock with recorded operations: index in [`crate::timeline::Timeline::locks`].
    Object(u32),
    /// A futex word that threads waited for as for a lock: index in [`crate::program::Recorded::objects`].
    Word(u32),
    /// Something that another request had, with the name of such waits in reports, e.g. `poll`.
    OtherRequest(&'static str),
}

impl LockRef {
    /// The kind of cause that a wait for it is.
    pub(super) fn kind(self) -> CauseKind {
        match self {
            LockRef::Object(_) | LockRef::Word(_) => CauseKind::Lock,
            LockRef::OtherRequest(_) => CauseKind::OtherRequest,
        }
    }
}

/// What a thread did during a [`PathPart`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Cause {
    /// The thread computed, in this innermost function with probes. Samples of many requests together show functions without
    /// probes.
    Computing(Option<FunctionRef>),
    /// The thread was woken and not on a CPU yet, although no thread of the program had that CPU: the hand-over itself.
    Woken,
    /// The thread waited for a CPU that another thread of the program had.
    NoCpu,
    /// The thread waited for a CPU that another program or the kernel had.
    NoCpuOthers,
    /// The thread waited for something outside the recorded threads.
    Waiting(Outside),
    /// The thread worked for other requests, and this request waited for its turn.
    Queued,
    /// Unknown: records are missing, or no record shows what ended a wait.
    Unknown,
    /// The walk was not continued: see [`super`].
    NotFollowed,
}

/// A wait that no thread of the recording ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Outside {
    /// What ended the wait.
    pub source: Source,
    /// The name of such waits in reports, e.g. `file sync`.
    pub name: &'static str,
    /// The number of the file, or of the other end of a socket, that was waited for
    /// ([`AwaitedFact::number`](crate::event::AwaitedFact)); `None`: not known, or one of many.
    pub of: Option<u32>,
    /// The function in which the thread slept, if known.
    pub function: Option<FunctionRef>,
}

/// What ends a wait from outside the recorded threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum Source {
    /// A disk or another block device, or the file system.
    Disk,
    /// The network, and the program at the other end of the connection.
    Peer,
    /// Time.
    Timer,
    /// A process that is not recorded.
    Process,
    /// Another device, an interrupt, a signal.
    Other,
}
