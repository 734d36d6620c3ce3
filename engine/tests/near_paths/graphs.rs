//! Random graphs: small multigraphs, with or without ties.

use engine::graph::{Activity, ActivityGraph, ActivityKind, VertexId};
use engine::program::{FunctionRef, ThreadId};
use engine::synth::Numbers;
use engine::time::Ticks;

/// Number of functions in a random graph.
pub const FUNCTIONS: u32 = 4;

/// A compute edge.
pub fn compute_edge(tail: u32, head: u32, length: u64, function: Option<FunctionRef>) -> Activity {
    Activity {
        tail: VertexId(tail),
        head: VertexId(head),
        length: Ticks(length),
        kind: ActivityKind::Compute,
        thread: ThreadId(0),
        operation: 0,
        function,
    }
}

/// A graph of up to 14 vertices and some 30 edges, with lengths from 0 to `longest`.
pub fn random_graph(seed: u64, longest: u64) -> ActivityGraph {
    let mut numbers = Numbers::new(seed);
    let vertices = 1 + numbers.below(14) as u32;
    let mut edges = Vec::new();
    let mut add = |numbers: &mut Numbers, tail: u32, head: u32| {
        let function = numbers.chance(4, 5).then(|| FunctionRef(numbers.below(u64::from(FUNCTIONS)) as u32));
        let edge = compute_edge(tail, head, numbers.below(longest + 1), function);
        edges.push(Activity { thread: ThreadId(numbers.below(3) as u32), ..edge });
    };
    for vertex in 1..vertices {
        let tail = numbers.below(u64::from(vertex)) as u32;
        add(&mut numbers, tail, vertex);
        if vertex + 1 < vertices {
            let head = vertex + 1 + numbers.below(u64::from(vertices - 1 - vertex)) as u32;
            add(&mut numbers, vertex, head);
        }
    }
    if vertices > 1 {
        for _ in 0..numbers.below(10) {
            let head = 1 + numbers.below(u64::from(vertices - 1)) as u32;
            let tail = numbers.below(u64::from(head)) as u32;
            for _ in 0..1 + numbers.below(2) {
                add(&mut numbers, tail, head);
            }
        }
    }
    // The source has an outgoing edge, even if no vertex was drawn after it.
    ActivityGraph::of_edges(vertices, &edges).expect("a graph")
}
