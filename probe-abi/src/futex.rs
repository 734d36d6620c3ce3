//! The futex system call: the word a thread waits on or wakes.

use crate::Header;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// A thread enters `futex(2)`.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct FutexEnter {
    /// `tid`/`pid` are the caller.
    pub header: Header,
    /// Address of the futex word in the caller's memory.
    pub word: u64,
    /// Second word of requeue operations, else 0.
    pub word2: u64,
    /// The `op` argument with its flag bits; see [`futex_operation`].
    pub operation: u32,
    /// The `val` argument: expected value of a wait, number of wakes of a wake.
    pub value: u32,
}

/// The same thread comes back from `futex(2)`.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct FutexExit {
    /// `tid`/`pid` are the caller.
    pub header: Header,
    /// What the call returned: ≥ 0 or −errno.
    pub result: i64,
}

/// The command of a futex `op` argument without its flag bits (`FUTEX_PRIVATE_FLAG`, `FUTEX_CLOCK_REALTIME`).
pub const fn futex_operation(operation: u32) -> u32 {
    operation & 0x7f
}

const _: () = assert!(size_of::<FutexEnter>() == 48);
const _: () = assert!(size_of::<FutexExit>() == 32);
