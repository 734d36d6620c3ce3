//! A thread as the scheduler sees it.

use super::load::Load;
use crate::program::ObjectId;

/// No processor, no thread.
pub(super) const NONE: u32 = u32::MAX;

/// A thread's state for the scheduler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TaskState {
    /// Not begun, over, or waiting without a processor.
    Off,
    /// In a processor's queue.
    Queued,
    /// On a processor, during the latency and the switch.
    Arriving,
    /// Computing.
    Running,
    /// Between two operations, on its processor.
    Acting,
    /// Keeping its processor busy for a spin lock.
    Spinning,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Task {
    pub(super) state: TaskState,
    /// Its processor, or the last that it had.
    pub(super) cpu: u32,
    /// Number of its valid entry in the agenda; entries with other numbers are out of date.
    pub(super) event: Option<u32>,
    /// Its wait had length 0: its turn at this instant is the end of that wait.
    pub(super) expires: bool,
    /// The rest of its computation.
    pub(super) left: u64,
    /// Cost of waking others that it has not computed yet ([`super::SchedulerParameters::wake_cost`]).
    pub(super) debt: u64,
    /// Up to when its processor time is accounted for.
    pub(super) charged: u64,
    /// Processor time, weighted (EEVDF's virtual runtime).
    pub(super) virtual_time: i64,
    /// Virtual time at which its slice ends.
    pub(super) deadline: i64,
    /// How far behind the average it was when it last left a processor (EEVDF's lag).
    pub(super) lag: i64,
    pub(super) weight: u32,
    /// Its own recent load.
    pub(super) wanting: Load,
    /// It has been in a queue before.
    pub(super) known: bool,
    /// The lock that it spins for, even while it is off its processor.
    pub(super) spins_for: Option<ObjectId>,
    /// Index of its affinity in the list of masks; `None`: all processors.
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
