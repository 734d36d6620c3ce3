//! The system call that a thread is in.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// A system call in progress, from the thread's saved registers: number and the first two arguments. It is read
/// when the thread sleeps or is woken, so that system calls themselves cost no more.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct Call {
    /// Its number on this architecture; that of [`Call::NONE`] if the thread is in none (a page fault, an exit) or
    /// in a 32-bit one, or if it was not checked.
    pub number: u32,
    /// Low half of the second argument; for `futex(2)` the operation with its flag bits. With
    /// [`SwitchFlags::AWAITED`](crate::SwitchFlags::AWAITED) the number of what the call's descriptor refers to.
    pub argument1: u32,
    /// First argument (for `futex(2)` the address of the word).
    pub argument0: u64,
}

impl Call {
    /// No system call.
    pub const NONE: Call = Call { number: u32::MAX, argument1: 0, argument0: 0 };
}

impl Default for Call {
    fn default() -> Call {
        Call::NONE
    }
}

/// `sched_yield(2)` on x86-64.
pub const YIELD_CALL: u32 = 24;
/// Number of `futex(2)` on x86-64, the only architecture that is recorded.
pub const FUTEX_CALL: u32 = 202;
/// The system call `futex_waitv(2)` (Linux 5.16).
pub const FUTEX_WAITV_CALL: u32 = 449;
/// The system call `futex_wake(2)` (Linux 6.7).
pub const FUTEX_WAKE_CALL: u32 = 454;

/// The command of a futex `op` argument without its flag bits (`FUTEX_PRIVATE_FLAG`, `FUTEX_CLOCK_REALTIME`).
pub const fn futex_operation(operation: u32) -> u32 {
    operation & 0x7f
}

const _: () = assert!(size_of::<Call>() == 16);
