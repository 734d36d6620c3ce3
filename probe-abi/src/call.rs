//! The system call that a thread executes.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// A system call in progress, from the thread's saved registers: its number and its first two arguments. The kernel
/// program reads it when the thread sleeps or is woken, so that other system calls cost nothing extra.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct Call {
    /// The call's number on this architecture. The number of [`Call::NONE`] means that the thread is in no system call
    /// (a page fault, an exit) or in a 32-bit one. That number can also mean that the program did not check.
    pub number: u32,
    /// Lower half of the second argument. For `futex(2)` this is the operation with its flag bits. With
    /// [`SwitchFlags::AWAITED`](crate::SwitchFlags::AWAITED) it is the number of the file or socket to which the call's
    /// descriptor refers.
    pub argument1: u32,
    /// First argument. For `futex(2)` this is the address of the word.
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

/// Number of `sched_yield(2)` on x86-64.
pub const YIELD_CALL: u32 = 24;
/// Number of `futex(2)` on x86-64, the only architecture that is recorded.
pub const FUTEX_CALL: u32 = 202;
/// Number of `futex_waitv(2)` (Linux 5.16) on x86-64.
pub const FUTEX_WAITV_CALL: u32 = 449;
/// Number of `futex_wake(2)` (Linux 6.7) on x86-64.
pub const FUTEX_WAKE_CALL: u32 = 454;

/// The command of a futex `op` argument without its flag bits (`FUTEX_PRIVATE_FLAG`, `FUTEX_CLOCK_REALTIME`).
pub const fn futex_operation(operation: u32) -> u32 {
    operation & 0x7f
}

const _: () = assert!(size_of::<Call>() == 16);
