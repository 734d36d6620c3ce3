//! Waits of threads for locks of the kernel. The kernel programs count them as sums in a map, not as records.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// Bits that describe the kind of a contended lock: `LCB_F_*` of Linux `include/trace/events/lock.h`, since 5.19.
pub struct ContentionFlags;

impl ContentionFlags {
    /// The thread spins on its CPU.
    pub const SPIN: u32 = 1;
    /// The thread wants to read.
    pub const READ: u32 = 2;
    /// The thread wants to write.
    pub const WRITE: u32 = 4;
    /// The lock has priority inheritance.
    pub const RT: u32 = 8;
    /// The lock is a read-write semaphore with a count for each CPU.
    pub const PERCPU: u32 = 16;
    /// The lock is a mutex, for which a thread first spins and then sleeps.
    pub const MUTEX: u32 = 32;
}

/// The key of a sum. Waits are added up for each process, system call and kind of lock.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct ContentionKey {
    /// Process id.
    pub pid: u32,
    /// Number of the system call. For a page fault, the number of [`crate::Call::NONE`].
    pub call: u32,
    /// The lock's [`ContentionFlags`]. For a mutex, [`ContentionFlags::SPIN`] is removed.
    pub flags: u32,
}

/// Sums of the waits with one [`ContentionKey`] on one CPU.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct ContentionCounts {
    /// Number of waits that have ended.
    pub count: u64,
    /// Total time of the waits, in nanoseconds.
    pub total_ns: u64,
    /// The part of `total_ns` in which threads spun, in nanoseconds.
    pub spun_ns: u64,
    /// The longest wait, in nanoseconds.
    pub longest_ns: u64,
}

/// A wait that has begun and not ended. If all fields are 0, there is none.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct OpenContention {
    /// Thread id.
    pub tid: u64,
    /// Address of the lock.
    pub lock: u64,
    /// Time at which the wait began (`CLOCK_MONOTONIC` nanoseconds).
    pub began_ns: u64,
    /// Time at which the present part of the wait began, in which the thread spins or sleeps (`CLOCK_MONOTONIC`
    /// nanoseconds).
    pub since_ns: u64,
    /// Time for which the thread spun before `since_ns`, in nanoseconds.
    pub spun_ns: u64,
    /// [`ContentionFlags`] of the present part of the wait.
    pub flags: u64,
}

/// Number of places for open waits. Threads whose ids are equal modulo this number share a place.
pub const OPEN_CONTENTIONS: u32 = 1 << 13;

/// Largest number of different [`ContentionKey`]s that are counted.
pub const MAX_CONTENTION_KEYS: u32 = 1 << 10;

const _: () = assert!(size_of::<ContentionKey>() == 12);
const _: () = assert!(size_of::<ContentionCounts>() == 32);
