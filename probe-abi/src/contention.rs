//! Waits of threads for locks of the kernel. The kernel programs count them as sums in a map, not as records.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// Bits of a contended lock's kind: `LCB_F_*` of Linux `include/trace/events/lock.h`, since 5.19.
pub struct ContentionFlags;

impl ContentionFlags {
    /// The thread spins on its CPU.
    pub const SPIN: u32 = 1;
    /// The thread wants to read.
    pub const READ: u32 = 2;
    /// The thread wants to write.
    pub const WRITE: u32 = 4;
    /// A lock with priority inheritance.
    pub const RT: u32 = 8;
    /// A read-write semaphore with counts by CPU.
    pub const PERCPU: u32 = 16;
    /// A mutex. It spins first, then sleeps.
    pub const MUTEX: u32 = 32;
}

/// The key of a sum: waits are added up by process, system call and kind of lock.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct ContentionKey {
    /// Process id.
    pub pid: u32,
    /// Number of the system call; that of [`crate::Call::NONE`] for a page fault.
    pub call: u32,
    /// [`ContentionFlags`] of the lock; for a mutex without [`ContentionFlags::SPIN`].
    pub flags: u32,
}

/// Sums of waits for one [`ContentionKey`] on one CPU.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct ContentionCounts {
    /// Waits that have ended.
    pub count: u64,
    /// Total time of the waits, nanoseconds.
    pub total_ns: u64,
    /// The part of `total_ns` in which threads spun, nanoseconds.
    pub spun_ns: u64,
    /// The longest wait, nanoseconds.
    pub longest_ns: u64,
}

/// A wait that has begun and not ended. All 0: none.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct OpenContention {
    /// The thread.
    pub tid: u64,
    /// Address of the lock.
    pub lock: u64,
    /// Time at which the wait began (`CLOCK_MONOTONIC` nanoseconds).
    pub began_ns: u64,
    /// Time at which the thread began to spin, or to sleep (`CLOCK_MONOTONIC` nanoseconds).
    pub since_ns: u64,
    /// Time for which the thread had spun before `since_ns`, nanoseconds.
    pub spun_ns: u64,
    /// [`ContentionFlags`] of the present part of the wait.
    pub flags: u64,
}

/// Number of places for open waits; threads whose ids are the same modulo this number share a place.
pub const OPEN_CONTENTIONS: u32 = 1 << 13;

/// Largest number of different [`ContentionKey`]s that are counted.
pub const MAX_CONTENTION_KEYS: u32 = 1 << 10;

const _: () = assert!(size_of::<ContentionKey>() == 12);
const _: () = assert!(size_of::<ContentionCounts>() == 32);
