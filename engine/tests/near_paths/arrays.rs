//! The longest path algorithm with an array of k paths at every vertex (1994, near-critical paths, III.B).

use super::Path;
use engine::graph::{ActivityGraph, VertexId};

struct Descriptor {
    length: u64,
    edge: u32,
    tail: u32,
    /// Index in the tail's array.
    index: u32,
}

/// The `most` longest paths.
pub fn arrays(graph: &ActivityGraph, most: usize) -> Vec<Path> {
    let mut ways: Vec<Vec<Descriptor>> = Vec::new();
    let mut number = 0;
    for vertex in 0..graph.vertices() {
        let mut all = Vec::new();
        if vertex == 0 {
            all.push(Descriptor { length: 0, edge: 0, tail: 0, index: 0 });
        }
        for edge in graph.into_vertex(VertexId(vertex as u32)) {
            let before = ways[edge.tail.0 as usize].iter().zip(0..);
            all.extend(before.map(|(way, index)| Descriptor {
                length: way.length + edge.length.0,
                edge: number,
                tail: edge.tail.0,
                index,
            }));
            number += 1;
        }
        all.sort_by_key(|way| std::cmp::Reverse(way.length));
        all.truncate(most);
        ways.push(all);
    }
    let last = ways.last().map_or(0, Vec::len);
    (0..last)
        .map(|rank| {
            let (mut vertex, mut index) = (graph.vertices() - 1, rank);
            let length = ways[vertex][index].length;
            let mut edges = Vec::new();
            while vertex > 0 {
                let way = &ways[vertex][index];
                edges.push(way.edge);
                (vertex, index) = (way.tail as usize, way.index as usize);
            }
            edges.reverse();
            (length, edges)
        })
        .collect()
}
