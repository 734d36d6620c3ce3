//! What a part of a request's latency was spent on.

use crate::program::FunctionRef;
use crate::time::Timestamp;
use strum::IntoStaticStr;

/// A part of a request's path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// First instant.
    pub from: Timestamp,
    /// Up to here; later than `from`.
    pub to: Timestamp,
    /// Index in [`crate::timeline::Timeline::threads`] of the thread that did it.
    pub thread: u32,
    /// What it did.
    pub cause: Cause,
    /// The lock that the request waited for meanwhile: `thread` had it, or what `thread` did kept the one who had it. Of
    /// several locks the first one that the request itself waited for.
    pub lock: Option<LockRef>,
}

impl Part {
    /// How long it is, ns.
    pub fn length_ns(&self) -> u64 {
        self.to.0.saturating_sub(self.from.0)
    }
}

/// A lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum LockRef {
    /// One with recorded operations: index in [`crate::timeline::Timeline::locks`].
    Object(u32),
    /// A futex word that threads waited for as for a lock: index in [`crate::program::Recorded::objects`].
    Word(u32),
}

/// See [`Part`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Cause {
    /// It computed; the innermost function with probes there. Which function without probes it was, samples tell for many
    /// requests together.
    Computing(Option<FunctionRef>),
    /// It was woken and not on a CPU yet, although none of the program's threads had that CPU: the hand-over itself.
    Woken,
    /// It wanted a CPU that another thread of the program had.
    NoCpu,
    /// It wanted a CPU that something else had: another program, or the kernel.
    NoCpuOthers,
    /// It waited for something outside the recorded threads.
    Waiting(Outside),
    /// It did other requests, and this one waited for its turn.
    Queued,
    /// Nobody knows: records are missing, or nothing tells who ended a wait.
    Unknown,
    /// The walk was not continued: see [`super`].
    NotFollowed,
}

/// A wait that no thread of the recording ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Outside {
    /// What ended it.
    pub source: Source,
    /// The name that a report has for such waits, e.g. `file sync`.
    pub name: &'static str,
    /// The function that the thread slept in, if it is known.
    pub function: Option<FunctionRef>,
}

/// What ends a wait from outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum Source {
    /// A disk or another block device, or the file system.
    Disk,
    /// The network, and what is at its other end.
    Peer,
    /// Time.
    Timer,
    /// A process that is not recorded.
    Process,
    /// Another device, an interrupt, a signal.
    Other,
}
