//! What threads wait for, as the kernel shows it when they leave their CPU.

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
    /// Inside the kernel with these `TASK_*` bits.
    Kernel {
        /// `TASK_*` bits, 0 if not known.
        task_state: u32,
        /// The system call, [`Call::NONE`] if it is in none or none is known.
        call: Call,
        /// What the descriptor stands for that the call was given.
        descriptor: Descriptor,
    },
}

impl WaitReason {
    /// What a thread waits for that sleeps with these `TASK_*` bits in this system call.
    pub fn of(task_state: u32, call: Call) -> WaitReason {
        let descriptor = Descriptor::Unknown;
        if task_state & STOPPED != 0 {
            return WaitReason::stopped(task_state);
        }
        awaited_futex(call).map_or(WaitReason::Kernel { task_state, call, descriptor }, WaitReason::Futex)
    }

    /// What the thread waits for that leaves its CPU to sleep.
    pub(super) fn of_sleeper(switch: &Switch) -> WaitReason {
        let (task_state, call) = (switch.prev_state, switch.prev_call);
        if task_state & STOPPED != 0 {
            return WaitReason::stopped(task_state);
        }
        let descriptor = SwitchFlags::descriptor(switch.flags);
        futex_of_sleeper(switch)
            .map_or(WaitReason::Kernel { task_state, call, descriptor }, WaitReason::Futex)
    }

    /// A debugger stops threads at the beginning of a system call, too: they do not wait in it yet.
    fn stopped(task_state: u32) -> WaitReason {
        WaitReason::Kernel { task_state, call: Call::NONE, descriptor: Descriptor::Unknown }
    }

    /// Whether the thread was stopped, by a signal or by a debugger.
    pub fn is_stop(&self) -> bool {
        matches!(self, WaitReason::Kernel { task_state, .. } if task_state & STOPPED != 0)
    }

    /// With the system call that its waking tells, if none was known, and of several words the one that it was woken by.
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
