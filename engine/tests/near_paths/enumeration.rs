//! Path enumeration (1994, near-critical paths, III.A). The paths found so far divide all other paths into parts: paths
//! with the same end up to an edge, but without that edge. The next path is the longest of all parts.

use super::Path;
use engine::graph::{ActivityGraph, VertexId};

/// Paths that end with `end`, and whose edge into the vertex before it is not in `without`; and the longest of them.
struct Part {
    longest: Path,
    end: Vec<u32>,
    without: Vec<u32>,
}

/// The `most` longest paths.
pub fn enumeration(graph: &ActivityGraph, most: usize) -> Vec<Path> {
    let firsts = firsts(graph);
    let mut parts: Vec<Part> = part(graph, &firsts, Vec::new(), Vec::new()).into_iter().collect();
    let mut found = Vec::new();
    while found.len() < most && !parts.is_empty() {
        let best = (0..parts.len())
            .max_by_key(|part| (parts[*part].longest.0, usize::MAX - part))
            .expect("there is one");
        let Part { longest, end, mut without } = parts.swap_remove(best);
        for kept in (0..longest.1.len() - end.len()).rev() {
            without.push(longest.1[kept]);
            let end = longest.1[kept + 1..].to_vec();
            parts.extend(part(graph, &firsts, end, std::mem::take(&mut without)));
        }
        found.push(longest);
    }
    found
}

/// By vertex: number of the first edge into it.
fn firsts(graph: &ActivityGraph) -> Vec<u32> {
    let mut firsts = vec![0];
    for vertex in 0..graph.vertices() {
        firsts.push(firsts[vertex] + graph.into_vertex(VertexId(vertex as u32)).count() as u32);
    }
    firsts
}

fn part(graph: &ActivityGraph, firsts: &[u32], end: Vec<u32>, without: Vec<u32>) -> Option<Part> {
    let last = match end.first() {
        Some(edge) => graph.activity(engine::graph::ActivityId(*edge)).tail,
        None => graph.sink(),
    };
    // The longest way to every vertex, without the edges `without`.
    let mut ways: Vec<Option<(u64, u32)>> = vec![None; graph.vertices()];
    ways[0] = Some((0, 0));
    for vertex in 1..=last.0 {
        for (edge, number) in graph.into_vertex(VertexId(vertex)).zip(firsts[vertex as usize]..) {
            if let Some((before, _)) = ways[edge.tail.0 as usize]
                && !without.contains(&number)
            {
                let way = (before + edge.length.0, number);
                let known = &mut ways[vertex as usize];
                if known.is_none_or(|(longest, _)| longest < way.0) {
                    *known = Some(way);
                }
            }
        }
    }
    let mut edges: Vec<u32> = end.iter().rev().copied().collect();
    let mut vertex = last;
    ways[last.0 as usize]?;
    while vertex.0 > 0 {
        let (_, edge) = ways[vertex.0 as usize]?;
        edges.push(edge);
        vertex = graph.activity(engine::graph::ActivityId(edge)).tail;
    }
    edges.reverse();
    Some(Part { longest: (super::length(graph, &edges), edges), end, without })
}
