//! The reasons for which threads wait, as the kernel shows them when a thread leaves its CPU.

use super::pending_wakeup::PendingWakeup;
use crate::event::{FutexFact, awaited_futex, futex_of_sleeper};
use probe_abi::{Call, Descriptor, Switch, SwitchFlags};

/// The kernel's `__TASK_STOPPED` and `__TASK_TRACED` (include/linux/sched.h).
const STOPPED: u32 = 4 | 8;

/// What a thread waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitReason {
    /// Inside a waiting futex call.
    Futex(FutexFact),
    /// The thread waited inside the kernel with these `TASK_*` bits.
    Kernel {
        /// Bits `TASK_*` of the kernel (include/linux/sched.h), 0 if not known.
        task_state: u32,
        /// The system call; [`Call::NONE`] outside of one, or if it is not known.
        call: Call,
        /// Kind of the descriptor that the call was given.
        descriptor: Descriptor,
    },
}

impl WaitReason {
    /// The reason of a thread that sleeps with these `TASK_*` bits in this system call.
    pub fn of(task_state: u32, call: Call) -> WaitReason {
        let descriptor = Descriptor::Unknown;
        if task_state & STOPPED != 0 {
            return WaitReason::stopped(task_state);
        }
        awaited_futex(call).map_or(WaitReason::Kernel { task_state, call, descriptor }, WaitReason::Futex)
    }

    /// The reason of the thread that a switch puts to sleep.
    pub(in crate::timeline) fn of_sleeper(switch: &Switch) -> WaitReason {
        let (task_state, call) = (switch.prev_state, switch.prev_call);
        if task_state & STOPPED != 0 {
            return WaitReason::stopped(task_state);
        }
        let descriptor = SwitchFlags::descriptor(switch.flags);
        // A call with a descriptor has the number of what that refers to as its second argument, or 0.
        let is_numbered = switch.flags & SwitchFlags::AWAITED != 0;
        let argument1 =
            if Descriptor::is_first_argument_of(call.number) && !is_numbered { 0 } else { call.argument1 };
        let call = Call { argument1, ..call };
        futex_of_sleeper(switch)
            .map_or(WaitReason::Kernel { task_state, call, descriptor }, WaitReason::Futex)
    }

    /// Without the system call: a debugger also stops threads at its beginning, when they do not wait in it yet.
    fn stopped(task_state: u32) -> WaitReason {
        WaitReason::Kernel { task_state, call: Call::NONE, descriptor: Descriptor::Unknown }
    }

    /// Whether the thread was stopped, by a signal or by a debugger.
    pub fn is_stop(&self) -> bool {
        matches!(self, WaitReason::Kernel { task_state, .. } if task_state & STOPPED != 0)
    }

    /// Adds what the waking shows: the system call if it was not known, and of several futex words the one that woke
    /// the thread.
    pub(super) fn or_in(self, woken: &PendingWakeup) -> WaitReason {
        match (self, woken.futex) {
            (stop, _) if stop.is_stop() => stop,
            (WaitReason::Kernel { call: Call::NONE, .. }, Some(futex)) => WaitReason::Futex(futex),
            (WaitReason::Kernel { task_state, call: Call::NONE, .. }, None) => {
                WaitReason::of(task_state, woken.call)
            }
            (WaitReason::Futex(FutexFact { words: 1.., .. }), Some(futex)) => WaitReason::Futex(futex),
            (known, _) => known,
        }
    }
}
