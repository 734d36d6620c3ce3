//! What comes of scheduling a program on unlimited processors.

use super::machine::Why;
use super::{Forest, PointId, Runs};
use crate::finding::Finding;
use crate::program::{ObjectId, ThreadId};

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

/// What passes while no processor works on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DelayKind {
    /// A thread was woken and has yet to act; what it waited for, `None` for a thread that begins.
    Woken(Option<Why>),
    /// A wait by the clock: for a device or for time to pass.
    Clock(Why),
    /// A thread that is ready is put on a processor: switching, a processor that is idle and does not look, a quota that is used up.
    Scheduling,
    /// A thread keeps a processor from others while it spins for this.
    Spinning(ObjectId),
}

/// A step that takes its time by the clock.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Latency {
    /// Where it ends.
    pub(crate) point: PointId,
    pub(crate) length: Ticks,
    pub(crate) of: DelayKind,
    /// Virtual time when it began, in parts of a tick as the machine counts them.
    pub(crate) begun: u128,
    /// How much of it passed meanwhile; 0 as long as it has not ended.
    pub(crate) virtual_length: u128,
    /// Its thread, and the operation that the thread reaches when it ends.
    #[cfg(any(test, feature = "synth"))]
    pub(crate) of_thread: (ThreadId, u32),
}

/// Processor time that a thread spends on waking another.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Charge {
    /// The run that takes so much longer.
    pub(crate) point: PointId,
    pub(crate) length: Ticks,
    pub(crate) thread: ThreadId,
    /// The operation that does.
    pub(crate) operation: u32,
}

/// A woken thread is on its way; in a trace.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Delay {
    /// How many steps there were in the trace before it.
    pub(crate) after: usize,
    pub(crate) thread: ThreadId,
    /// The operation that the thread reaches, or tries again.
    pub(crate) operation: u32,
    /// Its waker, and in which operation, where that decides when the thread tries its own again.
    pub(crate) by: Option<(ThreadId, u32)>,
    pub(crate) length: Ticks,
}

/// The results of a simulation with costs, in addition to the schedule.
#[derive(Debug)]
pub(crate) struct Costed {
    pub(crate) schedule: Schedule,
    pub(crate) latencies: Vec<Latency>,
    pub(crate) charges: Vec<Charge>,
    /// Runs of operations that were done again: the point of each, and that of the run that it is like.
    pub(crate) echoes: Vec<(PointId, PointId)>,
    /// In a trace.
    pub(crate) delays: Vec<Delay>,
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
