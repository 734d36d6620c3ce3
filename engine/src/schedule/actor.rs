//! A thread in the simulation: its position and its present operation.

use super::PointId;
use super::machine::Why;
use crate::program::ObjectId;

/// A moment of the schedule, with the point that decides it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Moment {
    pub(super) time: u64,
    pub(super) point: PointId,
}

/// A thread's state between its operations or inside one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// Another thread creates this one later.
    NotCreated,
    /// Reaches its next operation.
    Going,
    /// Has failed to take a lock; `since` is the time of the first attempt.
    Again,
    /// Waits for a condition to be signalled.
    Unsignalled,
    /// The condition was signalled at `since`; it has yet to take the mutex.
    Signalled,
    /// Computes the body of a `once`.
    InOnce,
    /// Has done all its operations, at `since`.
    Ended,
}

/// A thread in the simulation.
#[derive(Clone, Copy, Debug)]
pub(super) struct Actor {
    /// Index of its next operation.
    pub(super) next: u32,
    /// The point that decides the thread's present moment; during a timed step, the point of that step's end.
    pub(super) point: PointId,
    /// When the thread reached the operation it waits in.
    pub(super) since: u64,
    /// Number of the thread's next run.
    pub(super) next_run: u32,
    pub(super) stage: Stage,
    /// The thread's run has begun, and the vertex of its end is yet to come.
    pub(super) computing: bool,
    /// The thread is in a timed step other than computing, which ends with its next turn.
    pub(super) timed: bool,
}

/// A thread's periodic timer: its ends do not move with what the thread does in between.
#[derive(Clone, Copy, Debug)]
pub(super) struct Timer {
    /// The last end that the thread slept until.
    pub(super) origin: Moment,
    /// The timer's last end, slept until or not.
    pub(super) deadline: u64,
}

/// When a thread continues after an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Flow {
    /// At once.
    On,
    /// When its timed step ends, or another thread serves it.
    Stop,
    /// When it is woken: it yields its processor until then.
    Wait(Why),
    /// When a spin lock is freed: it keeps its processor until then.
    Spin(ObjectId),
}
