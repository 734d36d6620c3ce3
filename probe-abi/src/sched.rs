//! Records of the scheduler: which thread runs, and which thread wakes which.

use crate::{Call, Descriptor, Header};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// `sched_switch`: the header's thread left the CPU, and `next_tid` takes it.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct Switch {
    /// `tid` and `pid` are those of the thread that leaves.
    pub header: Header,
    /// Thread that takes the CPU; 0 is idle.
    pub next_tid: u32,
    /// Process of `next_tid`.
    pub next_pid: u32,
    /// The kernel's `prev_state` (`TASK_*` bits); 0: the thread is still runnable.
    pub prev_state: u32,
    /// [`SwitchFlags`] bits.
    pub flags: u32,
    /// User-space stack pointer of the leaving thread; 0 if not known. Frames below this address have ended.
    pub prev_user_sp: u64,
    /// The system call in which the leaving thread sleeps; [`Call::NONE`] if there is none.
    pub prev_call: Call,
}

/// Bits of [`Switch::flags`].
pub struct SwitchFlags;
impl SwitchFlags {
    /// The leaving thread was pre-empted. The thread stays runnable, whatever `prev_state` is.
    pub const PREEMPTED: u32 = 1;
    /// The leaving thread belongs to a tracked process.
    pub const PREV_TRACKED: u32 = 2;
    /// The thread that takes the CPU belongs to a tracked process.
    pub const NEXT_TRACKED: u32 = 4;
    /// The leaving thread sleeps in `futex_waitv(2)`. The first argument in `prev_call` is replaced by the address of
    /// the first word that the call waits for.
    pub const FIRST_WORD: u32 = 8;
    /// The leaving thread gave up the CPU by `sched_yield(2)`, and stays runnable.
    pub const YIELDED: u32 = 16;
    /// The second argument in `prev_call` is replaced by the number of the file or socket to which the call's
    /// descriptor refers ([`Awaited`](crate::Awaited)).
    pub const AWAITED: u32 = 32;
    /// Position of the four bits that contain the kind of descriptor in the system call's first argument, a
    /// [`Descriptor`](crate::Descriptor) as a number.
    pub const DESCRIPTOR_SHIFT: u32 = 8;

    /// The kind of descriptor that these flags contain.
    pub const fn descriptor(flags: u32) -> Descriptor {
        Descriptor::from_number(flags >> Self::DESCRIPTOR_SHIFT & 0xf)
    }
}

/// The header's thread is about to leave a CPU, but no [`Switch`] brought it there, because the kernel did not report
/// that switch. This record directly precedes the switch by which the thread leaves.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct Ran {
    /// `tid` and `pid` are those of the thread that leaves.
    pub header: Header,
    /// CPU time that the kernel has counted for the thread since it came to the CPU, in nanoseconds. Time that
    /// interrupts and the host took in between may be missing.
    pub ran_ns: u64,
}

/// `sched_waking` or `sched_wakeup_new`: the header's thread, in the header's context, makes `wakee_tid` runnable.
/// Written only if the wakee's process is tracked.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct Waking {
    /// `tid` and `pid` are the current thread's. The current thread is the waker only if `context` is `Task`.
    pub header: Header,
    /// Thread that becomes runnable.
    pub wakee_tid: u32,
    /// Process of `wakee_tid`.
    pub wakee_pid: u32,
    /// [`WakingFlags`] bits.
    pub flags: u32,
    /// The wakee's kernel task state just before the wake-up (`TASK_*` bits). 0 if the wakee was running or is new:
    /// waking a thread that did not sleep ends no wait.
    pub wakee_state: u32,
    /// Number of the system call by which the current thread wakes the wakee. The number of [`Call::NONE`] if the
    /// current thread is in no call, or if an interrupt wakes.
    pub waker_call: u32,
    /// In an interrupt context: a [`Cause`] as a number.
    pub cause: u32,
    /// The system call in which the wakee sleeps or was about to sleep; [`Call::NONE`] if there is none.
    pub wakee_call: Call,
}

/// The kind of interrupt that wakes a thread.
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Cause {
    /// There is no interrupt, or the kernel did not report it (a message from another CPU).
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
    /// The cause with this number. A number from a newer writer gives `None`.
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

    /// The cause that belongs to a soft interrupt's number. The numbers of `include/linux/interrupt.h` have not changed
    /// since Linux 2.6.
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
    /// This is the first wake-up of a new thread (`sched_wakeup_new`).
    pub const NEW: u32 = 1;
    /// The current thread belongs to a tracked process.
    pub const WAKER_TRACKED: u32 = 2;
    /// The wakee has a pending signal that it does not block, so the signal wakes it.
    pub const SIGNAL: u32 = 4;
    /// The wakee waits in a futex call, and was woken at another word than the one in that call: it was requeued, or
    /// waits for several words. The first argument in `wakee_call` is the address of the word at which it was woken.
    pub const OTHER_WORD: u32 = 8;
    /// The wake-up happens in a soft interrupt that receives a packet from the loopback device. The current thread
    /// itself has just sent that packet in a system call. So the current thread is the waker, and `waker_call` is its
    /// call.
    pub const OWN_PACKET: u32 = 16;
    /// The current thread sends a message over the network. Its arrival on another host wakes the wakee there
    /// ([`WakingFlags::ARRIVED`]). Written only when recordings of several hosts are joined.
    pub const SENT: u32 = 32;
    /// The wakee is woken because the message of the last [`WakingFlags::SENT`] to it has arrived. Written only when
    /// recordings of several hosts are joined.
    pub const ARRIVED: u32 = 64;
    /// With [`WakingFlags::ARRIVED`]: the wakee did not sleep. The wakee reads the message now, and would have had to
    /// wait if the message had come later.
    pub const READ: u32 = 128;
}

const _: () = assert!(size_of::<Switch>() == 64);
const _: () = assert!(size_of::<Ran>() == 32);
const _: () = assert!(size_of::<Waking>() == 64);
