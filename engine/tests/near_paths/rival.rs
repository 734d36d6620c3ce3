//! Input of the paper's algorithms: lists of edges out of each vertex, with their slack.

use engine::graph::{ActivityGraph, VertexId, VertexTimes};

/// Edges out of every vertex, sorted by total slack, in flat arrays: the rivals get fast data.
pub struct Lists {
    first: Vec<u32>,
    edges: Vec<Edge>,
    pub length: u64,
}

/// The paper's 8-tuple, without unused fields.
#[derive(Clone, Copy)]
pub struct Edge {
    pub number: u32,
    pub tail: u32,
    pub head: u32,
    pub total_slack: u64,
    pub free_slack: u64,
}

impl Lists {
    pub fn of(graph: &ActivityGraph, timing: &VertexTimes) -> Lists {
        let vertices = graph.vertices();
        let mut edges = Vec::with_capacity(graph.edges());
        let mut number = 0;
        for vertex in 0..vertices {
            let head = VertexId(vertex as u32);
            let (early, late) = (timing.early(head).0, timing.late(head).0);
            for activity in graph.into_vertex(head) {
                let (start, length) = (timing.early(activity.tail).0, activity.length.0);
                edges.push(Edge {
                    number,
                    tail: activity.tail.0,
                    head: head.0,
                    total_slack: late - length - start,
                    free_slack: early - (start + length),
                });
                number += 1;
            }
        }
        edges.sort_by_key(|edge| (edge.tail, edge.total_slack));
        let mut first = vec![0; vertices + 1];
        for edge in &edges {
            first[edge.tail as usize + 1] += 1;
        }
        for vertex in 0..vertices {
            first[vertex + 1] += first[vertex];
        }
        Lists { first, edges, length: timing.length().0 }
    }

    /// Edges out of a vertex, the least total slack first; none for the sink.
    pub fn out_of(&self, vertex: u32) -> &[Edge] {
        &self.edges[self.first[vertex as usize] as usize..self.first[vertex as usize + 1] as usize]
    }

    pub fn vertices(&self) -> usize {
        self.first.len() - 1
    }
}
