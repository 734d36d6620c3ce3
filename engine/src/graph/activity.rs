//! The activity graph: vertices and edges, numbered so that every edge goes from a smaller vertex to a larger one. The
//! edges into a vertex are contiguous, so a loop over all edges is in topological order.

use crate::finding::Finding;
use crate::program::{FunctionRef, ThreadId};
use crate::time::Ticks;

/// A boundary between two operations of a thread, or the meeting of a barrier. 0 is the source.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct VertexId(pub u32);

/// Number of an edge. Edges into a larger vertex have larger numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ActivityId(pub u32);

/// The kind of an edge.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ActivityKind {
    /// The thread computes: `exec`, and the body of a `once`. As long as the operation.
    Compute,
    /// The thread waits for a device. As long as the operation.
    Io,
    /// The thread sleeps. As long as the operation; a sleep until a point in time comes from the source.
    Sleep,
    /// The thread passes a synchronization operation. Takes no time.
    Step,
    /// Another thread's operation lets this one pass: from the end of the former to the end of the latter. Takes no time.
    Wake,
    /// The latency from the wake-up of a thread until it acts.
    Delay,
    /// From the source to a thread without a creator, or from a `create` to the created thread. Takes no time.
    Start,
    /// From a thread's last vertex to the sink. Takes no time.
    End,
}

/// An edge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Activity {
    /// Vertex at which the edge begins.
    pub tail: VertexId,
    /// Vertex at which the edge ends.
    pub head: VertexId,
    /// Its length.
    pub length: Ticks,
    /// Its kind.
    pub kind: ActivityKind,
    /// The thread of the operation; for a wake, the woken thread.
    pub thread: ThreadId,
    /// Index of the thread's operation; for a start 0, for an end the number of operations.
    pub operation: u32,
    /// The function on top of the thread's stack, if any.
    pub function: Option<FunctionRef>,
}

/// No function.
const NONE: u32 = u32::MAX;

/// A program activity graph (1994, near-critical paths, II.A): a directed acyclic multigraph with one source and one sink. An
/// edge takes 25 bytes and a vertex 4.
#[derive(Clone, Debug, Default)]
pub struct ActivityGraph {
    /// First edge into each vertex, and the end of the last.
    first: Vec<u32>,
    tails: Vec<u32>,
    lengths: Vec<u64>,
    kinds: Vec<ActivityKind>,
    threads: Vec<u32>,
    operations: Vec<u32>,
    functions: Vec<u32>,
    pub(super) findings: Vec<Finding>,
    /// End of the schedule that the graph was made from.
    pub(super) scheduled: Option<Ticks>,
}

/// An error in a graph. `Display` is one line.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GraphError {
    /// An edge does not go from a smaller vertex to a larger one: there may be a cycle.
    #[error("edge {} does not lead on", .0.0)]
    NotOrdered(ActivityId),
    /// A vertex other than the source has no incoming edge, or a vertex other than the sink no outgoing one.
    #[error("vertex {} is on no way from start to end", .0.0)]
    Loose(VertexId),
    /// The sum of all edges' lengths overflows.
    #[error("the lengths add up to more than fits")]
    TooLong,
    /// The longest path is not as long as the schedule.
    #[error("the longest path takes {} ns, but the schedule {} ns", path.as_ns_f64(), schedule.as_ns_f64())]
    OtherLength {
        /// Length of the longest path.
        path: Ticks,
        /// Length of the schedule.
        schedule: Ticks,
    },
}

impl ActivityGraph {
    /// A graph of these edges, for tests and benchmarks, with vertices 0 to `vertices` − 1; the last one is the sink.
    ///
    /// # Errors
    /// What [`ActivityGraph::check`] finds.
    #[cfg(any(test, feature = "synth"))]
    pub fn of_edges(vertices: u32, edges: &[Activity]) -> Result<ActivityGraph, GraphError> {
        let mut order: Vec<&Activity> = edges.iter().collect();
        order.sort_by_key(|edge| edge.head);
        let mut graph = ActivityGraph::with_capacity(edges.len());
        let mut rest = order.into_iter().peekable();
        for vertex in 0..vertices {
            while let Some(edge) = rest.next_if(|edge| edge.head.0 == vertex) {
                graph.edge_into(*edge);
            }
            graph.close();
        }
        if rest.next().is_some() {
            return Err(GraphError::Loose(VertexId(vertices)));
        }
        graph.check()?;
        Ok(graph)
    }

    pub(super) fn with_capacity(edges: usize) -> ActivityGraph {
        ActivityGraph {
            first: vec![0],
            tails: Vec::with_capacity(edges),
            lengths: Vec::with_capacity(edges),
            kinds: Vec::with_capacity(edges),
            threads: Vec::with_capacity(edges),
            operations: Vec::with_capacity(edges),
            functions: Vec::with_capacity(edges),
            ..ActivityGraph::default()
        }
    }

    /// Adds an edge into the vertex that is closed next; ignores the edge's `head`.
    pub(super) fn edge_into(&mut self, edge: Activity) {
        self.tails.push(edge.tail.0);
        self.lengths.push(edge.length.0);
        self.kinds.push(edge.kind);
        self.threads.push(edge.thread.0);
        self.operations.push(edge.operation);
        self.functions.push(edge.function.map_or(NONE, |function| function.0));
    }

    /// Completes the next vertex, after all edges into it were added, and returns it.
    pub(super) fn close(&mut self) -> VertexId {
        let vertex = VertexId(self.first.len() as u32 - 1);
        self.first.push(self.tails.len() as u32);
        vertex
    }

    /// Number of vertices.
    pub fn vertices(&self) -> usize {
        self.first.len().saturating_sub(1)
    }

    /// Number of edges.
    pub fn edges(&self) -> usize {
        self.tails.len()
    }

    /// The last vertex, where all paths end.
    pub fn sink(&self) -> VertexId {
        VertexId(self.vertices().saturating_sub(1) as u32)
    }

    /// Deadlocks and contradictions in the graph's program.
    pub fn findings(&self) -> &[Finding] {
        &self.findings
    }

    /// The thread of a vertex; `None` for the source, the sink, and the middle of a barrier.
    pub fn thread_at(&self, vertex: VertexId) -> Option<ThreadId> {
        let range = self.range(vertex.0 as usize);
        let first = range.start;
        // The first edge into a thread's vertex is the thread's own; all others name the same thread.
        let own = |edge: usize| self.threads[edge] == self.threads[first];
        (!range.is_empty() && self.kinds[first] != ActivityKind::End && range.clone().all(own))
            .then(|| ThreadId(self.threads[first]))
    }

    /// An edge. Finding its head takes logarithmic time.
    pub fn activity(&self, edge: ActivityId) -> Activity {
        let behind = self.first.partition_point(|first| *first <= edge.0);
        self.activity_into(edge, VertexId(behind.saturating_sub(1) as u32))
    }

    /// The edges into a vertex, in order of their numbers. The first is the edge of the vertex's own thread.
    pub fn into_vertex(&self, vertex: VertexId) -> impl DoubleEndedIterator<Item = Activity> + '_ {
        self.range(vertex.0 as usize).map(move |edge| self.activity_into(ActivityId(edge as u32), vertex))
    }

    pub(super) fn activity_into(&self, edge: ActivityId, head: VertexId) -> Activity {
        let place = edge.0 as usize;
        Activity {
            tail: VertexId(self.tails[place]),
            head,
            length: Ticks(self.lengths[place]),
            kind: self.kinds[place],
            thread: ThreadId(self.threads[place]),
            operation: self.operations[place],
            function: Some(self.functions[place]).filter(|function| *function != NONE).map(FunctionRef),
        }
    }

    /// Numbers of the edges into a vertex.
    #[inline]
    pub(super) fn range(&self, vertex: usize) -> std::ops::Range<usize> {
        self.first[vertex] as usize..self.first[vertex + 1] as usize
    }

    #[inline]
    pub(super) fn tail(&self, edge: usize) -> usize {
        self.tails[edge] as usize
    }

    #[inline]
    pub(super) fn length(&self, edge: usize) -> u64 {
        self.lengths[edge]
    }

    #[inline]
    pub(super) fn kind(&self, edge: usize) -> ActivityKind {
        self.kinds[edge]
    }

    #[inline]
    pub(super) fn thread(&self, edge: usize) -> ThreadId {
        ThreadId(self.threads[edge])
    }

    #[inline]
    pub(super) fn operation(&self, edge: usize) -> u32 {
        self.operations[edge]
    }

    #[inline]
    pub(super) fn function(&self, edge: usize) -> Option<FunctionRef> {
        let function = self.functions[edge];
        (function != NONE).then_some(FunctionRef(function))
    }

    /// Tail and length of each edge in the range.
    #[inline]
    pub(super) fn steps(&self, range: std::ops::Range<usize>) -> impl Iterator<Item = (u32, u64)> + '_ {
        self.tails[range.clone()].iter().copied().zip(self.lengths[range].iter().copied())
    }

    /// Checks that the graph is acyclic, has one source and one sink, a sum of lengths that fits, and a longest path as long
    /// as its schedule. Lengths are unsigned, so none is negative. O(edges).
    ///
    /// # Errors
    /// The first error found.
    pub fn check(&self) -> Result<(), GraphError> {
        let vertices = self.vertices();
        let mut has_out = vec![false; vertices];
        // A path has one edge out of the source, and each of the other edges at most once.
        let (mut total, mut longest_first) = (0_u64, 0);
        for vertex in 0..vertices {
            let edges = self.range(vertex);
            if edges.is_empty() != (vertex == 0) {
                return Err(GraphError::Loose(VertexId(vertex as u32)));
            }
            for edge in edges {
                let tail = self.tail(edge);
                if tail >= vertex {
                    return Err(GraphError::NotOrdered(ActivityId(edge as u32)));
                }
                has_out[tail] = true;
                if tail == 0 {
                    longest_first = self.length(edge).max(longest_first);
                } else {
                    total = total.checked_add(self.length(edge)).ok_or(GraphError::TooLong)?;
                }
            }
        }
        total.checked_add(longest_first).ok_or(GraphError::TooLong)?;
        has_out.pop();
        if let Some(loose) = has_out.iter().position(|out| !out) {
            return Err(GraphError::Loose(VertexId(loose as u32)));
        }
        let path = super::VertexTimes::of(self).length();
        match self.scheduled {
            Some(schedule) if schedule != path => Err(GraphError::OtherLength { path, schedule }),
            _ => Ok(()),
        }
    }
}
