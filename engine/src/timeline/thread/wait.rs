//! A wait: its reason, and what ended it.

use super::wait_reason::WaitReason;
use crate::event::{CallKind, call_kind};
use probe_abi::{Call, Descriptor};

/// A wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wait {
    /// What the thread waited for.
    pub reason: WaitReason,
    /// What ended the wait.
    pub wake: Wake,
    /// Whether the wait began before the window or before an unknown stretch, so that its length is not known.
    pub cut_at_start: bool,
    /// The futex word that ended the wait, if it differs from the wait's own: the waiters had been moved there
    /// (requeued).
    pub moved_to: Option<u64>,
    /// Whether the wait was until a time that the thread had computed from the current time: in effect a sleep for a
    /// length of time.
    pub from_now: bool,
}

impl Wait {
    /// The family of the system call in which the wait happened.
    pub fn kind(&self) -> CallKind {
        match self.reason {
            WaitReason::Futex(_) => CallKind::Futex,
            // A poll without descriptors can only end by time.
            WaitReason::Kernel { call, .. }
                if self.wake == Wake::External(External::Timer) && polls_nothing(call) =>
            {
                CallKind::Sleep
            }
            WaitReason::Kernel { call, .. } => call_kind(call.number),
        }
    }

    /// Kind of the descriptor that the thread's system call was given.
    pub fn descriptor(&self) -> Descriptor {
        match self.reason {
            WaitReason::Futex(_) => Descriptor::Unknown,
            WaitReason::Kernel { descriptor, .. } => descriptor,
        }
    }

    /// The number of the file, or of the other end of a socket, for which the thread slept
    /// ([`AwaitedFact::number`](crate::event::AwaitedFact)).
    pub fn awaited(&self) -> Option<u32> {
        match self.reason {
            WaitReason::Kernel { call, descriptor, .. }
                if descriptor != Descriptor::Unknown && Descriptor::is_first_argument_of(call.number) =>
            {
                (call.argument1 != 0).then_some(call.argument1)
            }
            _ => None,
        }
    }

    /// Whether the thread had nothing to do: it waited for work, and no recorded thread sent any.
    pub fn is_idle(&self) -> bool {
        matches!(self.wake, Wake::External(_)) && self.is_for_anything()
    }

    /// Whether the wait was for any new work, not for something that the thread itself had started.
    pub fn is_for_anything(&self) -> bool {
        match self.kind() {
            _ if self.wake == Wake::External(External::Request) => true,
            CallKind::Poll | CallKind::Accept | CallKind::Signal => true,
            CallKind::Read => matches!(
                self.descriptor(),
                Descriptor::Event | Descriptor::Signal | Descriptor::Notify | Descriptor::Terminal
            ),
            _ => false,
        }
    }

    /// Whether the wait lasted from before the window to the window's end, with an unknown reason.
    pub fn is_never_woken(&self) -> bool {
        let is_untold = matches!(self.reason, WaitReason::Kernel { call, .. } if call == Call::NONE);
        self.cut_at_start && self.wake == Wake::CutAtEnd && is_untold && !self.reason.is_stop()
    }

    /// Whether a wait for a futex ended at its time limit. The timer is the only interrupt that ends such a wait;
    /// signals from a timer are distinguished ([`External::Signal`]).
    pub fn timed_out(&self) -> bool {
        matches!(self.reason, WaitReason::Futex(_)) && matches!(self.wake, Wake::External(External::Timer))
    }

    /// Whether the wait was for time to pass, and was ended by that.
    pub fn is_for_time(&self) -> bool {
        let has_limit = || self.has_deadline() || self.kind() == CallKind::Sleep;
        self.timed_out() || matches!(self.wake, Wake::External(External::Timer)) && has_limit()
    }
}

/// What ended a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wake {
    /// A recorded thread, in its own code or system call: index in [`Timeline::wakeups`].
    By(u32),
    /// Something outside the recorded threads.
    External(External),
    /// The wait lasted until the window's end.
    CutAtEnd,
    /// The wait lasted until an unknown stretch.
    CutByUnknown,
}

/// Wakers other than threads of the recording. An interrupted thread is never the waker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum External {
    /// A task that is not recorded.
    Task,
    /// A timer.
    Timer,
    /// The network, in deferred interrupt work.
    Network,
    /// A request of a client, over the network or from another process.
    Request,
    /// A block device, in deferred interrupt work.
    Block,
    /// A device's hardware interrupt.
    Device,
    /// Another hardware interrupt, or one whose cause was not recorded.
    HardIrq,
    /// Other deferred interrupt work.
    SoftIrq,
    /// A non-maskable interrupt.
    Nmi,
    /// The idle task.
    Idle,
    /// A signal, sent by no thread of the recording.
    Signal,
    /// The kernel program could not find out the context of the waking.
    UnknownContext,
    /// A thread of the recording, before the window began.
    BeforeWindow,
    /// No wake-up was recorded, but the thread was on a CPU again.
    NotSeen,
}

/// Whether the call waits for descriptors and was given none, which is a sleep (poll(2), select(2)). Numbers of x86-64.
fn polls_nothing(call: Call) -> bool {
    const POLL: u32 = 7;
    const PPOLL: u32 = 271;
    const SELECT: u32 = 23;
    const PSELECT: u32 = 270;
    match call.number {
        POLL | PPOLL => call.argument1 == 0,
        SELECT | PSELECT => call.argument0 == 0,
        _ => false,
    }
}
