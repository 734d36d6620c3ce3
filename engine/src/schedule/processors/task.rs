//! A thread as the scheduler sees it.

use super::load::Load;
use crate::program::ObjectId;

/// No processor, no thread.
pub(super) const NONE: u32 = u32::MAX;

/// Where a thread is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TaskState {
    /// Not begun, over, or waiting without a processor.
    Off,
    /// In a processor's queue.
    Queued,
    /// Given a processor; what that costs is not over yet.
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
    /// Number of its valid entry in the agenda; others are out of date.
    pub(super) event: Option<u32>,
    /// It waited for no time at all: its turn at this instant is the end of that wait.
    pub(super) expires: bool,
    /// The rest of its computation.
    pub(super) left: u64,
    /// What it has spent on waking others and not computed yet ([`super::SchedulerParameters::wake_cost`]).
    pub(super) debt: u64,
    /// Up to when its processor time is accounted for.
    pub(super) charged: u64,
    /// Processor time, weighted (EEVDF's virtual runtime).
    pub(super) virtual_time: i64,
    /// Virtual time at which its slice ends.
    pub(super) deadline: i64,
    /// How far behind the others it was when it last gave its processor up (EEVDF's lag).
    pub(super) lag: i64,
    pub(super) weight: u32,
    /// How much it has lately wanted a processor.
    pub(super) wanting: Load,
    /// It has been in a queue before.
    pub(super) known: bool,
    /// The lock that it spins for, also while it is off its processor.
    pub(super) spins_for: Option<ObjectId>,
    /// Index of its processors in the list of masks.
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
