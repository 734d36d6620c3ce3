//! The longest paths in nonincreasing order, each found when it is asked for (1994, near-critical paths, III: the same
//! answers as its four algorithms, which are in the tests).
//!
//! This storage is longpole's own: a path is stored as its parent, the path with which it shares its end, and the
//! detour by which it leaves that ([`super::detours`]). Its edges are listed only on request. The first path and k more
//! take O(edges + k log k), and memory for k such pairs.

use super::activity::{ActivityGraph, ActivityId};
use super::detours::Detours;
use super::timing::VertexTimes;
use crate::time::Ticks;
use std::cmp::Ordering;
use std::collections::BinaryHeap;

/// A path that was found, with its rank and length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NearPath {
    /// 0 for the critical path.
    pub number: usize,
    /// Length of the path.
    pub length: Ticks,
    /// How much shorter the path is than the critical path.
    pub shorter: Ticks,
}

/// The paths from source to sink, longest first. The order of equal paths does not depend on how many are asked for.
#[derive(Debug)]
pub struct NearPaths<'g> {
    graph: &'g ActivityGraph,
    timing: &'g VertexTimes,
    pub(super) detours: Detours,
    /// Number of detours asked for.
    wanted: usize,
    candidates: BinaryHeap<Candidate>,
    pushed: u64,
    pub(super) found: Vec<Found>,
}

/// A path, stored as its parent path and the detour at which it leaves the parent.
#[derive(Clone, Copy, Debug)]
pub(super) struct Found {
    /// The path with which this one shares all edges from the detour's head to the sink. The critical path has its own
    /// number here.
    pub(super) parent: u32,
    /// Number of the detour; 0 for the critical path.
    pub(super) detour: u32,
    pub(super) cost: u64,
}

/// A path that is returned once all cheaper paths have been returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Candidate {
    cost: u64,
    /// Order of creation, which decides among equal costs.
    order: u64,
    parent: u32,
    junction: u32,
    rank: u32,
    /// The stretch of the parent in which the junction is the cheapest: from junction `start` up to depth `stop`.
    start: u32,
    stop: u32,
}

impl Ord for Candidate {
    fn cmp(&self, other: &Candidate) -> Ordering {
        (other.cost, other.order).cmp(&(self.cost, self.order))
    }
}

impl PartialOrd for Candidate {
    fn partial_cmp(&self, other: &Candidate) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<'g> NearPaths<'g> {
    /// Prepares the first path. `expected` is about how many paths will be asked for. More can be found, but each doubling of
    /// their number takes another walk over the graph.
    pub fn new(graph: &'g ActivityGraph, timing: &'g VertexTimes, expected: usize) -> NearPaths<'g> {
        let mut paths = NearPaths {
            graph,
            timing,
            detours: Detours::default(),
            wanted: 0,
            candidates: BinaryHeap::new(),
            pushed: 0,
            found: Vec::new(),
        };
        paths.begin(expected.max(1));
        paths
    }

    /// Number of paths given so far.
    pub fn found(&self) -> usize {
        self.found.len()
    }

    /// The edges of a given path from source to sink. Takes as many steps as the path has edges.
    pub fn edges(&self, number: usize) -> Vec<ActivityId> {
        let mut detours = Vec::new();
        let mut at = number;
        while at > 0 && at < self.found.len() {
            detours.push(self.detours.detours[self.found[at].detour as usize].edge);
            at = self.found[at].parent as usize;
        }
        let mut path = Vec::new();
        if number >= self.found.len() {
            return path;
        }
        let mut vertex = self.graph.sink().0 as usize;
        while vertex > 0 {
            let detour =
                detours.last().copied().filter(|edge| self.graph.range(vertex).contains(&(*edge as usize)));
            let edge = detour.unwrap_or(self.timing.best[vertex]);
            if detour.is_some() {
                detours.pop();
            }
            path.push(ActivityId(edge));
            vertex = self.graph.tail(edge as usize);
        }
        path.reverse();
        path
    }

    /// The length of the next path, without moving on to that path.
    pub fn peek(&mut self) -> Option<Ticks> {
        if !self.ready() {
            return None;
        }
        let cost = if self.found.is_empty() { 0 } else { self.candidates.peek()?.cost };
        Some(Ticks(self.timing.length().0.saturating_sub(cost)))
    }

    /// Whether there is a next path; computes more detours when the present ones are used up.
    fn ready(&mut self) -> bool {
        // Vertices, and so paths, are numbered with 32 bits.
        if self.found.len() == u32::MAX as usize {
            return false;
        }
        while !self.found.is_empty() && self.candidates.is_empty() {
            if self.detours.complete {
                return false;
            }
            // The present detours give no more paths: starts again with more detours, and repeats the paths given so far.
            let given = self.found.len();
            self.begin(self.wanted.max(given).saturating_mul(2));
            for _ in 0..given {
                self.advance();
            }
        }
        true
    }

    fn begin(&mut self, wanted: usize) {
        self.wanted = wanted;
        self.detours = Detours::of(self.graph, self.timing, wanted);
        self.candidates.clear();
        self.found.clear();
        self.pushed = 0;
    }

    fn advance(&mut self) {
        if self.found.is_empty() {
            self.found.push(Found { parent: 0, detour: 0, cost: 0 });
            self.stretch(0, self.detours.last, 0);
            return;
        }
        let Some(candidate) = self.candidates.pop() else { return };
        let Some((number, detour)) = self.detours.at(candidate.junction, candidate.rank) else { return };
        let own = self.found.len() as u32;
        self.found.push(Found { parent: candidate.parent, detour: number, cost: candidate.cost });
        if candidate.rank == 0 {
            let junction = self.detours.junctions[candidate.junction as usize];
            self.stretch(candidate.parent, candidate.start, junction.depth);
            self.stretch(candidate.parent, junction.above, candidate.stop);
        }
        self.push(Candidate { rank: candidate.rank + 1, ..candidate });
        self.stretch(own, detour.beyond, 0);
    }

    /// Makes a candidate of the cheapest detour that leaves the path `parent` on this stretch.
    fn stretch(&mut self, parent: u32, start: u32, stop: u32) {
        if let Some(junction) = self.detours.cheapest(start, stop) {
            self.push(Candidate { cost: 0, order: 0, parent, junction, rank: 0, start, stop });
        }
    }

    fn push(&mut self, candidate: Candidate) {
        if let Some((_, detour)) = self.detours.at(candidate.junction, candidate.rank) {
            let cost = self.found[candidate.parent as usize].cost.saturating_add(detour.cost);
            if cost <= self.detours.most {
                self.candidates.push(Candidate { cost, order: self.pushed, ..candidate });
                self.pushed += 1;
            }
        }
    }
}

impl Iterator for NearPaths<'_> {
    type Item = NearPath;

    fn next(&mut self) -> Option<NearPath> {
        if !self.ready() {
            return None;
        }
        self.advance();
        let number = self.found.len().checked_sub(1)?;
        let shorter = Ticks(self.found[number].cost);
        Some(NearPath { number, length: Ticks(self.timing.length().0.saturating_sub(shorter.0)), shorter })
    }
}
