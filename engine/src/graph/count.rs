//! Numbers of paths: all, critical ones, and listed ones through each edge.

use super::activity::ActivityGraph;
use super::paths::NearPaths;
use super::timing::VertexTimes;

/// Numbers of paths from source to sink, saturating: `u128::MAX` stands for at least as many.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PathCounts {
    /// All paths.
    pub all: u128,
    /// Paths as long as the longest.
    pub critical: u128,
}

impl PathCounts {
    /// O(edges).
    pub fn of(graph: &ActivityGraph, timing: &VertexTimes) -> PathCounts {
        let vertices = graph.vertices();
        let mut counts = vec![(0_u128, 0_u128); vertices];
        if let Some(source) = counts.first_mut() {
            *source = (1, 1);
        }
        for vertex in 1..vertices {
            let (mut all, mut longest) = (0_u128, 0_u128);
            for edge in graph.range(vertex) {
                let (before, before_longest) = counts[graph.tail(edge)];
                all = all.saturating_add(before);
                if timing.free(graph, edge, vertex) == 0 {
                    longest = longest.saturating_add(before_longest);
                }
            }
            counts[vertex] = (all, longest);
        }
        let (all, critical) = counts.last().copied().unwrap_or_default();
        PathCounts { all, critical }
    }
}

/// Numbers of listed paths that go through an edge.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Through {
    /// Paths as long as the longest.
    pub critical: u32,
    /// Shorter paths.
    pub near: u32,
}

impl NearPaths<'_> {
    /// For every edge of the graph, the number of given paths that go through it. O(edges + paths).
    pub fn through(&self, graph: &ActivityGraph, timing: &VertexTimes) -> Vec<Through> {
        let mut edges = vec![Through::default(); graph.edges()];
        for critical in [true, false] {
            // For each path: number of paths that share its way from its detour to the sink, itself included.
            let mut sharing: Vec<u32> =
                self.found.iter().map(|path| u32::from((path.cost == 0) == critical)).collect();
            for path in (1..sharing.len()).rev() {
                let parent = self.found[path].parent as usize;
                sharing[parent] += sharing[path];
            }
            // For each vertex: number of paths that join the longest way to it there, less the number of those that
            // leave it there.
            let mut change = vec![0_i64; graph.vertices()];
            let mut note = |edge: usize, paths: u32| {
                let through = &mut edges[edge];
                let count = if critical { &mut through.critical } else { &mut through.near };
                *count += paths;
            };
            if let (Some(sink), Some(all)) = (change.last_mut(), sharing.first()) {
                *sink += i64::from(*all);
            }
            for (path, paths) in self.found.iter().zip(&sharing).skip(1) {
                let edge = self.detours.detours[path.detour as usize].edge;
                let head = graph.activity(super::ActivityId(edge)).head.0 as usize;
                note(edge as usize, *paths);
                change[head] -= i64::from(*paths);
                change[graph.tail(edge as usize)] += i64::from(*paths);
            }
            for vertex in (1..graph.vertices()).rev() {
                let paths = change[vertex];
                let edge = timing.best[vertex] as usize;
                note(edge, u32::try_from(paths).unwrap_or(0));
                change[graph.tail(edge)] += paths;
            }
        }
        edges
    }
}
