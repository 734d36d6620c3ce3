//! What comes of scheduling a program on unlimited processors.

use super::{Forest, PointId, Runs};
use crate::program::ThreadId;
use crate::report::Finding;

use crate::time::Ticks;

/// A change of the number of executing threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Vertex {
    /// When.
    pub time: Ticks,
    /// Which thread.
    pub thread: ThreadId,
    /// +1: it starts to use a processor; −1: it stops.
    pub change: i32,
    /// What decides when: if this point came earlier, so would the vertex.
    pub decided_by: PointId,
}

/// An operation takes effect; in a trace, for tests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Step {
    pub(crate) thread: ThreadId,
    pub(crate) operation: u32,
    /// It only begins to wait for a condition: a signal before this is lost.
    pub(crate) begins: bool,
}

/// What a finished simulation leaves.
#[derive(Debug)]
pub struct Schedule {
    /// The deciding points.
    pub forest: Forest,
    /// Where and when each run of compute operations was.
    pub runs: Runs,
    /// For each thread, how many of its operations it has done; all, unless it waits for ever.
    pub done: Vec<usize>,
    /// When the last timed step ends.
    pub length: Ticks,
    /// What decides the end: if it came earlier, so would the end.
    pub end: PointId,
    /// Deadlocks and contradictions in the program.
    pub findings: Vec<Finding>,
    /// For tests: operations in the order in which they took effect, if asked for.
    pub(crate) trace: Vec<Step>,
}
