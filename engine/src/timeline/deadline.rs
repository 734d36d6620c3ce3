//! Waits until a point in time, as opposed to waits for a length of time.

use super::model::Wait;
use super::wait_reason::WaitReason;
use crate::event::CallKind;
use probe_abi::Descriptor;

impl Wait {
    /// Whether it was for a point in time, which does not move with what the thread did before: until a time of a clock
    /// (`clock_nanosleep` with `TIMER_ABSTIME`), or for a timer that repeats or was set to such a time.
    pub fn has_deadline(&self) -> bool {
        /// `clock_nanosleep(2)` on x86-64.
        const CLOCK_NANOSLEEP: u32 = 230;
        const TIMER_ABSTIME: u32 = 1;
        /// The clocks of CPU time; all others go on by themselves. Those of single processes and threads are negative.
        const CPU_TIME: [u32; 2] = [2, 3];
        match self.reason {
            WaitReason::Futex(_) => false,
            WaitReason::Kernel { descriptor: Descriptor::Deadline, .. } => self.kind() == CallKind::Read,
            WaitReason::Kernel { call, .. } => {
                let clock = call.argument0 as u32;
                call.number == CLOCK_NANOSLEEP
                    && call.argument1 & TIMER_ABSTIME != 0
                    && !CPU_TIME.contains(&clock)
                    && i32::try_from(clock).is_ok()
            }
        }
    }
}
