//! Turns instants into terms. Vertices at one instant with the same deciding point are a cluster, with a net change Δ.
//! Shortening a segment by ε moves the clusters below it by −ε. For ε, n₋ + ΣΔ(clusters below) threads execute, instead of n₋
//! as before the instant. So the segment's weight gets s(n₋) − s(n₋ + ΣΔ): one term for each instant, depending on the
//! clusters below the segment.
//!
//! As sums over subtrees (a method of longpole's own): take the tree spanned by the clusters and their pairwise common
//! ancestors. A node u with D(u) = ΣΔ at and below it carries s(n₋) − s(n₋ + D(u)), less the same of its children.

use crate::schedule::{Forest, Machine, Operations, PointId, Simulation, Vertex};
use crate::time::Ticks;

/// Runs a simulation to its end.
///
/// Returns three things: the terms of all instants; ticks by the number of threads that execute; and the number of
/// threads that still execute at the end.
pub(super) fn sweep<M: Machine, O: Operations>(
    simulation: &mut Simulation<'_, M, O>,
) -> (Vec<Term>, Vec<u64>, u32) {
    let mut clusters = Clusters::default();
    let (mut vertices, mut terms) = (Vec::new(), Vec::new());
    let mut executing: Vec<u64> = Vec::new();
    let (mut last, mut count) = (Ticks(0), 0_i64);
    while let Some(now) = simulation.next_instant(&mut vertices) {
        let level = usize::try_from(count).unwrap_or(0);
        if executing.len() <= level {
            executing.resize(level + 1, 0);
        }
        executing[level] += now.0.saturating_sub(last.0);
        last = now;
        count = clusters.instant(simulation.forest(), count, &vertices, &mut terms);
    }
    (terms, executing, u32::try_from(count).unwrap_or(0))
}

/// Adds s(from) − s(to) to the weight of every segment at or above `point`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Term {
    pub(super) point: PointId,
    pub(super) from: u32,
    pub(super) to: u32,
}

/// A point with its net change at the current instant; while the sweep walks down, the changes below the point are
/// included.
#[derive(Clone, Copy, Debug)]
struct Cluster {
    point: PointId,
    change: i64,
}

/// Turns instants into terms, one after the other.
#[derive(Debug, Default)]
pub(super) struct Clusters {
    clusters: Vec<Cluster>,
    /// The way from the top of the spanned tree to the current cluster.
    path: Vec<Cluster>,
}

impl Clusters {
    /// Appends the terms of an instant; returns the number of threads that execute after it. `before`: the number before it.
    pub(super) fn instant(
        &mut self,
        forest: &Forest,
        before: i64,
        vertices: &[Vertex],
        terms: &mut Vec<Term>,
    ) -> i64 {
        self.gather(vertices);
        let after = self.clusters.iter().fold(before, |count, cluster| count + cluster.change);
        match *self.clusters.as_slice() {
            [] => {}
            [one] => push(terms, one.point, before, after),
            [a, b] => {
                let above = forest.common(a.point, b.point);
                let (with_a, with_b) = (before + a.change, before + b.change);
                if above == a.point {
                    push(terms, b.point, before, with_b);
                    push(terms, a.point, with_b, after);
                } else if above == b.point {
                    push(terms, a.point, before, with_a);
                    push(terms, b.point, with_a, after);
                } else {
                    push(terms, a.point, before, with_a);
                    push(terms, b.point, before, with_b);
                    push(terms, above, with_a, after);
                    push(terms, above, with_b, before);
                }
            }
            _ => self.many(forest, before, terms),
        }
        after
    }

    /// Sums changes by point and drops those that are 0. A point may occur more than once in a long list of clusters,
    /// which `many` tolerates.
    fn gather(&mut self, vertices: &[Vertex]) {
        self.clusters.clear();
        const FEW: usize = 8;
        for vertex in vertices {
            let change = i64::from(vertex.change);
            // Searches from the end: a thread that goes on after a synchronization stops and starts at one point.
            let known = if self.clusters.len() <= FEW {
                self.clusters.iter_mut().rev().find(|cluster| cluster.point == vertex.decided_by)
            } else {
                self.clusters.last_mut().filter(|cluster| cluster.point == vertex.decided_by)
            };
            match known {
                Some(cluster) => cluster.change += change,
                None => self.clusters.push(Cluster { point: vertex.decided_by, change }),
            }
        }
        self.clusters.retain(|cluster| cluster.change != 0);
    }

    /// Terms for any number of clusters: walks the spanned tree depth first, with O(m log m) comparisons of points.
    fn many(&mut self, forest: &Forest, before: i64, terms: &mut Vec<Term>) {
        self.clusters.sort_unstable_by(|a, b| forest.walk_order(a.point, b.point));
        self.path.clear();
        for place in 0..self.clusters.len() {
            let cluster = self.clusters[place];
            if let Some(last) = self.path.last() {
                let above = forest.common(last.point, cluster.point);
                self.fold(Some(above), before, terms);
            }
            self.path.push(cluster);
        }
        self.fold(None, before, terms);
    }

    /// Folds finished clusters of the path into their parents, down to `floor` (which is added if it is missing), or all.
    /// Points on the path have ascending numbers, so numbers tell which point is below which.
    fn fold(&mut self, floor: Option<PointId>, before: i64, terms: &mut Vec<Term>) {
        while let Some(top) = self.path.last().copied() {
            if floor.is_some_and(|floor| top.point <= floor) {
                return;
            }
            self.path.pop();
            push(terms, top.point, before, before + top.change);
            if let Some(floor) = floor
                && self.path.last().is_none_or(|parent| parent.point < floor)
            {
                self.path.push(Cluster { point: floor, change: 0 });
            }
            if let Some(parent) = self.path.last_mut() {
                parent.change += top.change;
                push(terms, parent.point, before + top.change, before);
            }
        }
    }
}

/// Appends a term unless it is 0 for every CPU count. Its factor s is the same for all counts up to 1.
fn push(terms: &mut Vec<Term>, point: PointId, from: i64, to: i64) {
    // Some of an instant's changes alone may lead below 0, where a segment of length 0 starts and ends.
    let count = |count: i64| u32::try_from(count.max(1)).unwrap_or(u32::MAX);
    let (from, to) = (count(from), count(to));
    if from != to {
        terms.push(Term { point, from, to });
    }
}
