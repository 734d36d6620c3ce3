//! Results of scheduling a program on unlimited processors.

use crate::finding::Finding;
use crate::program::{ObjectId, ThreadId};
use crate::schedule::machine::Why;
use crate::schedule::{Forest, PointId, Runs};

use crate::time::Ticks;

/// A change of the number of executing threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Vertex {
    /// Time of the vertex.
    pub time: Ticks,
    /// Thread of the vertex.
    pub thread: ThreadId,
    /// +1: it starts to use a processor; −1: it stops.
    pub change: i32,
    /// The deciding point: if it came earlier, so would the vertex.
    pub decided_by: PointId,
}

/// A kind of time that passes without computing the program's functions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DelayKind {
    /// A woken thread has yet to act. What it waited for; `None` for a thread that begins.
    Woken(Option<Why>),
    /// A wait by the clock: for a device or for time to pass.
    Clock(Why),
    /// A ready thread waits to be put on a processor: during a switch, while an idle processor does not ask for
    /// threads, or because a quota is used up.
    Scheduling,
    /// A thread keeps its processor busy while it spins for this object.
    Spinning(ObjectId),
}

/// A step whose length is given by the clock.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Latency {
    /// The point of the step's end.
    pub(crate) point: PointId,
    pub(crate) length: Ticks,
    pub(crate) of: DelayKind,
    /// Virtual time at which the step began, in parts of a tick as the machine counts them.
    pub(crate) begun: u128,
    /// Virtual time that passed during the step; 0 until it ends.
    pub(crate) virtual_length: u128,
    /// The step's thread, and the operation that the thread reaches at the step's end.
    #[cfg(any(test, feature = "synth"))]
    pub(crate) of_thread: (ThreadId, u32),
}

/// Processor time that a thread spends on waking another.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Charge {
    /// The point of the run that becomes longer by this.
    pub(crate) point: PointId,
    pub(crate) length: Ticks,
    pub(crate) thread: ThreadId,
    /// The operation that becomes longer.
    pub(crate) operation: u32,
}

/// The latency of a woken thread, in a trace.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Delay {
    /// Number of steps that precede the delay in the trace.
    pub(crate) after: usize,
    pub(crate) thread: ThreadId,
    /// The operation that the thread reaches or tries again.
    pub(crate) operation: u32,
    /// Its waker and the waker's operation, if that decides when the thread tries again.
    pub(crate) by: Option<(ThreadId, u32)>,
    pub(crate) length: Ticks,
}

/// The results of a simulation with costs, in addition to the schedule.
#[derive(Debug)]
pub(crate) struct Costed {
    pub(crate) schedule: Schedule,
    pub(crate) latencies: Vec<Latency>,
    pub(crate) charges: Vec<Charge>,
    /// Repeated runs: the point of each, and the point of the run that it repeats.
    pub(crate) echoes: Vec<(PointId, PointId)>,
    /// Latencies; empty unless a trace is kept.
    pub(crate) delays: Vec<Delay>,
}

/// An operation that takes effect, in a trace for tests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Step {
    pub(crate) thread: ThreadId,
    pub(crate) operation: u32,
    /// The thread begins to wait for a condition: a signal before this step is lost.
    pub(crate) begins: bool,
}

/// The results of a finished simulation.
#[derive(Debug)]
pub struct Schedule {
    /// The deciding points.
    pub forest: Forest,
    /// When each run of compute operations began, and the point of its end.
    pub runs: Runs,
    /// For each thread: number of operations that it has done; fewer than all if the thread waits forever.
    pub done: Vec<usize>,
    /// Time at which the last timed step ends.
    pub length: Ticks,
    /// The point that decides the end: if it came earlier, so would the end.
    pub end: PointId,
    /// Deadlocks and contradictions in the program.
    pub findings: Vec<Finding>,
    /// For tests: operations in the order in which they took effect, if a trace was asked for.
    pub(crate) trace: Vec<Step>,
}
