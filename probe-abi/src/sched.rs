//! Scheduler records: who runs, and who woke whom.

use crate::{Call, Descriptor, Header};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// `sched_switch`: the header's thread left the CPU, `next_tid` takes it.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct Switch {
    /// `tid`/`pid` are the thread that leaves.
    pub header: Header,
    /// Thread that takes the CPU; 0 is idle.
    pub next_tid: u32,
    /// Process of `next_tid`.
    pub next_pid: u32,
    /// The kernel's `prev_state` (`TASK_*` bits; 0 = still runnable).
    pub prev_state: u32,
    /// [`SwitchFlags`] bits.
    pub flags: u32,
    /// User-space stack pointer of the leaving thread, 0 if not known. Frames below it are gone.
    pub prev_user_sp: u64,
    /// The system call in which it sleeps; [`Call::NONE`] unless it does.
    pub prev_call: Call,
}

/// Bits of [`Switch::flags`].
pub struct SwitchFlags;
impl SwitchFlags {
    /// The leaving thread was pre-empted: it stays runnable, with any `prev_state`.
    pub const PREEMPTED: u32 = 1;
    /// The leaving thread belongs to a tracked process.
    pub const PREV_TRACKED: u32 = 2;
    /// The thread that takes the CPU belongs to a tracked process.
    pub const NEXT_TRACKED: u32 = 4;
    /// It sleeps in `futex_waitv(2)`, and the first argument in `prev_call` is not that of the call but the address of
    /// the first of its words.
    pub const FIRST_WORD: u32 = 8;
    /// The leaving thread asked for it, by `sched_yield(2)`: it stays runnable.
    pub const YIELDED: u32 = 16;
    /// Four bits from this one on: the [`Descriptor`](crate::Descriptor) that the system call was given, as a number.
    pub const DESCRIPTOR_SHIFT: u32 = 8;

    /// The descriptor in these flags.
    pub const fn descriptor(flags: u32) -> Descriptor {
        Descriptor::from_number(flags >> Self::DESCRIPTOR_SHIFT & 0xf)
    }
}

/// The header's thread is about to leave a CPU to which no [`Switch`] took it: the kernel did not report that
/// one. Comes right before the switch that it does report.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct Ran {
    /// `tid`/`pid` are the thread that leaves.
    pub header: Header,
    /// CPU time that the kernel has counted for it since it came, nanoseconds. What interrupts and the host took
    /// meanwhile may be missing from it.
    pub ran_ns: u64,
}

/// `sched_waking` or `sched_wakeup_new`: the header's thread, in the header's context, makes `wakee_tid`
/// runnable. Written for tracked wakees only.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct Waking {
    /// `tid`/`pid` are the current thread: the waker only if `context` is `Task`.
    pub header: Header,
    /// Thread that becomes runnable.
    pub wakee_tid: u32,
    /// Process of `wakee_tid`.
    pub wakee_pid: u32,
    /// [`WakingFlags`] bits.
    pub flags: u32,
    /// The wakee's kernel task state just before (`TASK_*` bits), 0 if it was running or is new: a waking of a
    /// thread that did not sleep ends no wait.
    pub wakee_state: u32,
    /// Number of the system call by which the current thread wakes; [`Call::NONE`]'s if it is in none, or was
    /// merely interrupted.
    pub waker_call: u32,
    /// A [`Cause`] as a number: which interrupt it was, in interrupt context.
    pub cause: u32,
    /// The system call in which the wakee sleeps, or was about to; [`Call::NONE`] if it does not.
    pub wakee_call: Call,
}

/// Which interrupt wakes.
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Cause {
    /// None, or an unreported one (a message from another CPU).
    None = 0,
    /// A high-resolution timer, or the timer wheel's soft interrupt.
    Timer = 1,
    /// A device's hardware interrupt.
    Device = 2,
    /// The network's soft interrupts.
    Network = 3,
    /// The block devices' soft interrupt.
    Block = 4,
    /// Any other soft interrupt.
    Soft = 5,
}

impl Cause {
    /// The cause of a number; one from a newer writer is `None`.
    pub const fn from_number(number: u32) -> Cause {
        match number {
            1 => Cause::Timer,
            2 => Cause::Device,
            3 => Cause::Network,
            4 => Cause::Block,
            5 => Cause::Soft,
            _ => Cause::None,
        }
    }

    /// The cause for a soft interrupt's number (`include/linux/interrupt.h`: an order that has not changed
    /// since Linux 2.6).
    pub const fn of_soft_interrupt(number: u32) -> Cause {
        match number {
            1 | 8 => Cause::Timer,
            2 | 3 => Cause::Network,
            4 | 5 => Cause::Block,
            _ => Cause::Soft,
        }
    }
}

/// Bits of [`Waking::flags`].
pub struct WakingFlags;
impl WakingFlags {
    /// First wake-up of a new thread (`sched_wakeup_new`).
    pub const NEW: u32 = 1;
    /// The current thread belongs to a tracked process.
    pub const WAKER_TRACKED: u32 = 2;
    /// A signal is pending that the wakee does not block: that is what wakes it.
    pub const SIGNAL: u32 = 4;
    /// The wakee waits in a futex call and was woken by another word than the one of its call (requeued, or
    /// one of several). The first argument in `wakee_call` is the address of that word.
    pub const OTHER_WORD: u32 = 8;
    /// A soft interrupt does it that takes in a packet which the current thread itself has just sent, in its own system
    /// call, over the loopback device: the current thread is the waker, and `waker_call` its call.
    pub const OWN_PACKET: u32 = 16;
}

const _: () = assert!(size_of::<Switch>() == 64);
const _: () = assert!(size_of::<Ran>() == 32);
const _: () = assert!(size_of::<Waking>() == 64);
