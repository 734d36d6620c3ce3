//! Thread contexts: the trace that a thread works for, as the program publishes it (OpenTelemetry, OTEP 4947).

use crate::Header;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// The header's thread was seen with another context than the last time. When it changed is not known: between the two looks.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct ThreadContext {
    /// `tid` and `pid` are those of the thread.
    pub header: Header,
    /// Time of the last look at the thread before this one, when it still had its context before (`CLOCK_MONOTONIC` nanoseconds);
    /// 0: this is the first look.
    pub before_ns: u64,
    /// How many changes of this thread's context were seen before. A hole is a lost record.
    pub number: u64,
    /// The 16 bytes of the trace id, in their order in memory; all 0: the thread works for no trace.
    pub trace: [u64; 2],
}

impl ThreadContext {
    /// No trace.
    pub const NONE: [u64; 2] = [0, 0];
}

/// Where the threads of a process publish their context: a thread-local variable with a pointer.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct ContextPlace {
    /// The number of the library in glibc's table of thread-local blocks (DTV); 0: the variable is at a fixed distance from the
    /// thread pointer.
    pub module: u32,
    /// 1: the place is that in the program which the process executes next.
    pub after_exec: u32,
    /// Distance in bytes from that library's block, or from the thread pointer; may be negative, so it wraps around.
    pub offset: u64,
}

/// The context with which a thread was last seen. Kept by the kernel programs.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct SeenContext {
    /// Process id << 32 | thread id; 0: none. Threads that share an entry take turns.
    pub thread: u64,
    /// Time of the last look, `CLOCK_MONOTONIC` nanoseconds.
    pub seen_ns: u64,
    /// See [`ThreadContext::number`]; of the last change.
    pub number: u64,
    /// See [`ThreadContext::trace`].
    pub trace: [u64; 2],
}

/// Number of [`SeenContext`] entries: a power of two.
pub const SEEN_CONTEXTS: u32 = 1 << 15;
/// Largest number of processes with a [`ContextPlace`].
pub const MAX_CONTEXT_PLACES: u32 = 4_096;

const _: () = assert!(size_of::<ThreadContext>() == 56);
const _: () = assert!(size_of::<ContextPlace>() == 16);
const _: () = assert!(size_of::<SeenContext>() == 40);
