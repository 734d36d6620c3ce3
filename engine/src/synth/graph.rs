//! Generates a large activity graph for benchmarks, shaped like the graphs of 1994 (near-critical paths, Table III).

use crate::graph::{Activity, ActivityGraph, ActivityKind, GraphError, VertexId};
use crate::numbers::Numbers;
use crate::program::{FunctionRef, ThreadId};
use crate::time::Ticks;

const FUNCTIONS: u64 = 64;

/// A graph with exactly this many edges (at least some tens) on 8 threads. It has chains of computing, and a wake edge with a
/// latency at one of 14 vertices, as the largest graph of the paper (261,776 edges and 243,447 vertices).
///
/// # Errors
/// More edges than 32 bits can number.
pub fn large_graph(edges: u32, seed: u64) -> Result<ActivityGraph, GraphError> {
    const THREADS: u32 = 8;
    let mut numbers = Numbers::new(seed);
    let mut all: Vec<Activity> = Vec::with_capacity(edges as usize);
    // Every vertex has one edge from its own thread, except the source (none) and the sink (one for each thread). All
    // other edges are wake edges.
    let inner = (u64::from(edges.saturating_sub(THREADS)) * 243_447 / 261_776).max(u64::from(THREADS)) as u32;
    let mut wakes = edges.saturating_sub(inner + THREADS);
    let mut last = [VertexId(0); THREADS as usize];
    for vertex in 1..=inner {
        // The first vertices are the threads' starts.
        let thread = if vertex <= THREADS { vertex - 1 } else { numbers.below(u64::from(THREADS)) as u32 };
        let head = VertexId(vertex);
        let wake = vertex > THREADS && numbers.below(u64::from(inner - vertex + 1)) < u64::from(wakes);
        let starts = last[thread as usize] == VertexId(0);
        let kind = if starts { ActivityKind::Start } else { ActivityKind::Compute };
        let computes = kind == ActivityKind::Compute;
        let edge = Activity {
            tail: last[thread as usize],
            head,
            length: Ticks::from_ns(if computes { 1 + numbers.below(20_000) } else { 0 }),
            kind,
            thread: ThreadId(thread),
            operation: vertex,
            function: computes.then(|| FunctionRef(numbers.below(FUNCTIONS) as u32)),
        };
        all.push(edge);
        if wake {
            let other = (thread + 1 + numbers.below(u64::from(THREADS - 1)) as u32) % THREADS;
            let tail = last[other as usize];
            // A latency, so that hardly two paths are equally long.
            let length = Ticks::from_ns(1 + numbers.below(5_000));
            all.push(Activity { tail, length, kind: ActivityKind::Wake, function: None, ..edge });
            wakes -= 1;
        }
        last[thread as usize] = head;
    }
    let sink = VertexId(inner + 1);
    for (tail, thread) in last.into_iter().zip(0..) {
        all.push(Activity {
            tail,
            head: sink,
            length: Ticks(0),
            kind: ActivityKind::End,
            thread: ThreadId(thread),
            operation: inner + 1,
            function: None,
        });
    }
    ActivityGraph::of_edges(sink.0 + 1, &all)
}

#[cfg(test)]
mod tests {
    use super::large_graph;

    #[test]
    fn a_large_generated_graph_has_the_edges_asked_for() {
        for edges in [100, 5_000, 261_776] {
            let graph = large_graph(edges, 1).expect("a graph");
            assert_eq!(graph.edges(), edges as usize);
        }
        assert_eq!(large_graph(261_776, 1).expect("a graph").vertices(), 243_441);
    }
}
