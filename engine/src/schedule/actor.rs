//! A thread in the simulation: its position and its present operation.

use super::PointId;
use super::machine::Why;
use crate::program::ObjectId;

/// A time in the schedule, with the point that decides it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Moment {
    pub(super) time: u64,
    pub(super) point: PointId,
}

/// What a thread does between its operations or inside one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// Another thread will create this one.
    NotCreated,
    /// The thread reaches its next operation.
    Going,
    /// Has failed to take a lock; `since` is the time of the first attempt.
    Again,
    /// Waits for a condition to be signalled.
    Unsignalled,
    /// The condition was signalled at `since`; it has yet to take the mutex.
    Signalled,
    /// Computes the body of a `once`.
    InOnce,
    /// The thread has done all its operations, at `since`.
    Ended,
}

/// A thread in the simulation.
#[derive(Clone, Copy, Debug)]
pub(super) struct Actor {
    /// Index of the thread's next operation.
    pub(super) next: u32,
    /// The point that decides the thread's present moment; during a timed step, the point of that step's end.
    pub(super) point: PointId,
    /// Time at which the thread reached the operation in which it waits.
    pub(super) since: u64,
    /// Number of the thread's next run.
    pub(super) next_run: u32,
    pub(super) stage: Stage,
    /// Whether the thread's run has begun, and the vertex of the run's end is yet to come.
    pub(super) computing: bool,
    /// Whether the thread is in a timed step other than computing. The step ends with the thread's next turn.
    pub(super) timed: bool,
}

/// When a thread continues after an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Flow {
    /// At once.
    On,
    /// When the thread's timed step ends, or another thread serves it.
    Stop,
    /// When the thread is woken: until then it yields its processor.
    Wait(Why),
    /// When a spin lock is freed: until then the thread keeps its processor.
    Spin(ObjectId),
}
