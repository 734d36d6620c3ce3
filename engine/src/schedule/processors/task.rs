//! The scheduler's view of a thread.

use super::load::Load;
use crate::program::ObjectId;

/// No processor, no thread.
pub(super) const NONE: u32 = u32::MAX;

/// A thread's state for the scheduler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TaskState {
    /// The thread has not begun, is over, or waits without a processor.
    Off,
    /// The thread is in a processor's queue.
    Queued,
    /// On a processor, during the latency and the switch.
    Arriving,
    /// Computing.
    Running,
    /// The thread is between two operations, on its processor.
    Acting,
    /// The thread busy-waits on its processor for a spin lock.
    Spinning,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Task {
    pub(super) state: TaskState,
    /// The thread's processor, or the last one that it had.
    pub(super) cpu: u32,
    /// Number of the thread's valid entry in the agenda; entries with other numbers are out of date.
    pub(super) event: Option<u32>,
    /// Its wait had length 0: its turn at this instant is the end of that wait.
    pub(super) expires: bool,
    /// The part of the thread's computation that it has yet to do.
    pub(super) left: u64,
    /// Cost of waking other threads that the thread has not computed yet ([`super::SchedulerParameters::wake_cost`]).
    pub(super) debt: u64,
    /// Time until which the thread's processor time is accounted for.
    pub(super) charged: u64,
    /// Processor time, weighted (EEVDF's virtual runtime).
    pub(super) virtual_time: i64,
    /// Virtual time at which the thread's slice ends.
    pub(super) deadline: i64,
    /// How far behind the average the thread was when it last left a processor (EEVDF's lag).
    pub(super) lag: i64,
    pub(super) weight: u32,
    /// Its own recent load.
    pub(super) wanting: Load,
    /// Whether the thread has been in a queue before.
    pub(super) known: bool,
    /// The lock that the thread spins for, even while it is off its processor.
    pub(super) spins_for: Option<ObjectId>,
    /// Index of the thread's affinity in the list of masks; `None`: all processors.
    pub(super) mask: Option<u32>,
}

impl Task {
    pub(super) fn new(weight: u32, mask: Option<u32>) -> Task {
        Task {
            state: TaskState::Off,
            cpu: NONE,
            event: None,
            expires: false,
            left: 0,
            debt: 0,
            charged: 0,
            virtual_time: 0,
            deadline: 0,
            lag: 0,
            weight,
            wanting: Load::default(),
            known: false,
            spins_for: None,
            mask,
        }
    }
}
