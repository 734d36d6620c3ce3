//! A thread in the simulation: its position, and the operation that it is in.

use super::PointId;
use super::machine::Why;
use crate::program::ObjectId;

/// A moment of the schedule with what decides it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Moment {
    pub(super) time: u64,
    pub(super) point: PointId,
}

/// What a thread is in the middle of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// Some thread creates it, and none has yet.
    NotCreated,
    /// It reaches its next operation.
    Going,
    /// It has failed to take a lock; `since` is when it first tried.
    Again,
    /// It waits for a condition to be signalled.
    Unsignalled,
    /// The condition was signalled at `since`; it has yet to take the mutex.
    Signalled,
    /// It computes the body of a `once`.
    InOnce,
    /// It has done everything, at `since`.
    Ended,
}

/// A thread in the simulation.
#[derive(Clone, Copy, Debug)]
pub(super) struct Actor {
    /// Index of its next operation.
    pub(super) next: u32,
    /// What decided its present moment, or, while a timed step runs, the end of that step.
    pub(super) point: PointId,
    /// When it came to the operation it waits in.
    pub(super) since: u64,
    /// Number of its next run.
    pub(super) next_run: u32,
    pub(super) stage: Stage,
    /// Its processor use has started and the vertex of its end is yet to come.
    pub(super) computing: bool,
    /// It is in a step other than computing, which ends with its next turn.
    pub(super) timed: bool,
}

/// A timer whose ends do not move with what its thread does in between.
#[derive(Clone, Copy, Debug)]
pub(super) struct Timer {
    /// The last of its ends that a thread slept until.
    pub(super) origin: Moment,
    /// Its last end, slept until or not.
    pub(super) deadline: u64,
}

/// Whether a thread continues after an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Flow {
    /// At once.
    On,
    /// When something else has happened.
    Stop,
    /// When it is woken: it yields its processor.
    Wait(Why),
    /// When a spin lock is freed: it keeps its processor.
    Spin(ObjectId),
}
