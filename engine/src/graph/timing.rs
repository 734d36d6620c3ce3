//! The critical path method (1994, near-critical paths, II.C): early and late times and slack of every edge, in one walk
//! forward and one back over the edges. O(edges).

use super::activity::{ActivityGraph, ActivityId, VertexId};
use crate::time::Ticks;

/// Early and late times of all vertices, from which those of edges follow.
#[derive(Clone, Debug)]
pub struct VertexTimes {
    /// For each vertex: its earliest time, which is the length of the longest way to it.
    pub(super) early: Vec<u64>,
    /// For each vertex: the latest time that does not make the run longer.
    pub(super) late: Vec<u64>,
    /// For each vertex: the last edge of the longest way to it; of several such edges the first. Unused for the source.
    pub(super) best: Vec<u32>,
}

impl VertexTimes {
    /// Times of a graph that has been checked or was made from a program.
    pub fn of(graph: &ActivityGraph) -> VertexTimes {
        let vertices = graph.vertices();
        let mut early = vec![0_u64; vertices];
        let mut best = vec![0_u32; vertices];
        for vertex in 1..vertices {
            let range = graph.range(vertex);
            let (mut longest, mut chosen) = (0, range.start);
            for (edge, (tail, length)) in range.clone().zip(graph.steps(range)) {
                // Cannot overflow: `ActivityGraph::check`, and for programs `Program::check`, bound the sum.
                let finish = early[tail as usize].wrapping_add(length);
                if finish > longest {
                    (longest, chosen) = (finish, edge);
                }
            }
            early[vertex] = longest;
            best[vertex] = chosen as u32;
        }
        let length = early.last().copied().unwrap_or(0);
        let mut late = vec![length; vertices];
        for vertex in (1..vertices).rev() {
            let finish = late[vertex];
            for (tail, length) in graph.steps(graph.range(vertex)) {
                let start = finish.wrapping_sub(length);
                let late = &mut late[tail as usize];
                *late = start.min(*late);
            }
        }
        VertexTimes { early, late, best }
    }

    /// Length of the critical path.
    pub fn length(&self) -> Ticks {
        Ticks(self.early.last().copied().unwrap_or(0))
    }

    /// The earliest time at which a vertex is reached.
    pub fn early(&self, vertex: VertexId) -> Ticks {
        Ticks(self.early.get(vertex.0 as usize).copied().unwrap_or(0))
    }

    /// The latest time at which a vertex may be reached without making the whole longer.
    pub fn late(&self, vertex: VertexId) -> Ticks {
        Ticks(self.late.get(vertex.0 as usize).copied().unwrap_or(0))
    }

    /// Early start, early finish, late start, late finish, total slack and free slack of an edge.
    pub fn activity(&self, graph: &ActivityGraph, edge: ActivityId) -> ActivityTimes {
        let activity = graph.activity(edge);
        let early_start = self.early(activity.tail);
        let early_finish = Ticks(early_start.0.saturating_add(activity.length.0));
        let late_finish = self.late(activity.head);
        let late_start = Ticks(late_finish.0.saturating_sub(activity.length.0));
        ActivityTimes {
            early_start,
            early_finish,
            late_start,
            late_finish,
            total_slack: Ticks(late_start.0.saturating_sub(early_start.0)),
            free_slack: Ticks(self.early(activity.head).0.saturating_sub(early_finish.0)),
        }
    }

    /// The latest time at which a vertex may be reached without making the run longer.
    pub fn critical_path(&self, graph: &ActivityGraph) -> Vec<ActivityId> {
        let mut path = Vec::new();
        let mut vertex = graph.sink().0 as usize;
        while vertex > 0 {
            let edge = self.best[vertex];
            path.push(ActivityId(edge));
            vertex = graph.tail(edge as usize);
        }
        path.reverse();
        path
    }

    /// The free slack of an edge into this vertex: how much later it may arrive without delaying the vertex.
    #[inline]
    pub(super) fn free(&self, graph: &ActivityGraph, edge: usize, head: usize) -> u64 {
        self.early[head].wrapping_sub(self.early[graph.tail(edge)].wrapping_add(graph.length(edge)))
    }
}

/// The critical path method's times of one edge (1994, II.C).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ActivityTimes {
    /// The earliest start.
    pub early_start: Ticks,
    /// The earliest finish.
    pub early_finish: Ticks,
    /// Latest start that does not make the run longer.
    pub late_start: Ticks,
    /// Latest finish that does not make the run longer.
    pub late_finish: Ticks,
    /// Longest delay that does not make the run longer.
    pub total_slack: Ticks,
    /// The longest delay that delays nothing else.
    pub free_slack: Ticks,
}
