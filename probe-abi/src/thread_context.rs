//! Thread contexts: which trace a thread works for, as the program publishes it (OpenTelemetry, OTEP 4947).

use crate::Header;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// The programs have seen the header's thread with another context than the last time. The context changed at an
/// unknown time between the two looks.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct ThreadContext {
    /// `tid` and `pid` are those of the thread.
    pub header: Header,
    /// Time of the previous look at the thread, when it still had its previous context (`CLOCK_MONOTONIC` nanoseconds).
    /// 0: this is the first look.
    pub before_ns: u64,
    /// Number of changes of this thread's context that the programs saw before. A missing number is a lost record.
    pub number: u64,
    /// The 16 bytes of the trace id, ordered as in memory. All 0: the thread works for no trace.
    pub trace: [u64; 2],
}

impl ThreadContext {
    /// No trace.
    pub const NONE: [u64; 2] = [0, 0];
}

/// Where the threads of a process publish their context: in a thread-local variable that contains a pointer.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct ContextPlace {
    /// The number of the library in glibc's table of thread-local blocks (DTV). 0: the variable has a fixed distance
    /// from the thread pointer.
    pub module: u32,
    /// 1: the place is valid only after the process has executed its next program.
    pub after_exec: u32,
    /// Distance in bytes from the library's block, or from the thread pointer. The distance may be negative; it is
    /// stored modulo 2^64.
    pub offset: u64,
}

/// The context with which the programs last saw a thread. The kernel programs keep these entries.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct SeenContext {
    /// `pid << 32 | tid` of the thread; 0: none. If several threads share an entry, the last one replaces the others.
    pub thread: u64,
    /// Time of the last look (`CLOCK_MONOTONIC` nanoseconds).
    pub seen_ns: u64,
    /// Number of the last change: see [`ThreadContext::number`].
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
