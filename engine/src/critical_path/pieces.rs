//! Which parts of each run of compute operations are on the path of a run of the program ([`crate::schedule::RunPath`]).

use super::lanes::Lane;
use crate::schedule::{PointId, Visit};

/// A part of a run of compute operations that is on the path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Piece {
    /// Start and end in the run, ticks.
    from: u64,
    to: u64,
    /// How many times the piece is on the path: more than once where a background thread repeats operations.
    times: i64,
}

/// All pieces, by run of operations; those of a run in order, not adjacent ones joined.
#[derive(Debug)]
pub(super) struct Pieces {
    /// Index of the first piece of each run, and the end of the last.
    first: Vec<u32>,
    pieces: Vec<Piece>,
}

impl Pieces {
    /// Sorts the visits of a path by run. O(n log n).
    pub(super) fn of(mut visits: Vec<Visit>, runs: usize) -> Pieces {
        visits.sort_unstable();
        let mut pieces: Vec<Piece> = Vec::new();
        let mut first = Vec::with_capacity(runs + 1);
        let mut edges: Vec<(u64, i64)> = Vec::new();
        for of_run in visits.chunk_by(|a, b| a.run == b.run) {
            let run = of_run.first().map_or(0, |visit| visit.run as usize);
            first.resize(run + 1, pieces.len() as u32);
            edges.clear();
            edges.extend(of_run.iter().flat_map(|visit| [(visit.from, 1), (visit.to, -1)]));
            edges.sort_unstable();
            let (mut from, mut times) = (0, 0);
            for (at, change) in edges.drain(..) {
                if times > 0 && at > from {
                    let begun = first[run] as usize;
                    match pieces[begun..].last_mut().filter(|last| last.to == from && last.times == times) {
                        Some(last) => last.to = at,
                        None => pieces.push(Piece { from, to: at, times }),
                    }
                }
                (from, times) = (at, times + change);
            }
        }
        first.resize(runs + 1, pieces.len() as u32);
        Pieces { first, pieces }
    }

    fn of_run(&self, run: PointId) -> &[Piece] {
        let bounds = self.first.get(run.index()).zip(self.first.get(run.index() + 1));
        let range = bounds.map_or(0..0, |(from, to)| *from as usize..*to as usize);
        self.pieces.get(range).unwrap_or_default()
    }

    /// Ticks on the path between two offsets in the run.
    pub(super) fn between(&self, run: PointId, from: u64, to: u64) -> i64 {
        let pieces = self.of_run(run);
        let start = pieces.partition_point(|piece| piece.to <= from);
        let inside = pieces[start..].iter().take_while(|piece| piece.from < to);
        inside.map(|piece| piece.times * (piece.to.min(to) - piece.from.max(from)) as i64).sum()
    }
}

/// Walks through runs of operations piece by piece, for N paths at the same time.
#[derive(Debug)]
pub(super) struct Walked<'p, const N: usize> {
    all: &'p [Pieces; N],
    left: [&'p [Piece]; N],
    at: u64,
}

impl<'p, const N: usize> Walked<'p, N> {
    pub(super) fn new(all: &'p [Pieces; N]) -> Walked<'p, N> {
        Walked { all, left: [&[]; N], at: 0 }
    }

    /// Goes to the start of a run; returns for each path whether any of it is on the path.
    pub(super) fn begin(&mut self, run: PointId) -> [bool; N] {
        self.at = 0;
        for (left, pieces) in self.left.iter_mut().zip(self.all) {
            *left = pieces.of_run(run);
        }
        self.left.map(|left| !left.is_empty())
    }

    /// Passes this length; returns the ticks of it on each path.
    pub(super) fn pass(&mut self, length: u64) -> Lane<i64, N> {
        let (from, to) = (self.at, self.at.saturating_add(length));
        self.at = to;
        self.left.each_mut().map(|left| {
            let mut sum = 0;
            while let Some((piece, rest)) = left.split_first().filter(|(piece, _)| piece.from < to) {
                sum += piece.times * (piece.to.min(to) - piece.from.max(from).min(piece.to)) as i64;
                if piece.to > to {
                    break;
                }
                *left = rest;
            }
            sum
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_a_path_are_the_same_by_place_and_on_the_way() {
        let visit = |run, from, to| Visit { run, from, to };
        // The second run is cut in two pieces, with 30 to 40 on the path twice; the first and last run are not on it.
        let visits = vec![visit(1, 30, 40), visit(1, 10, 20), visit(1, 20, 25), visit(1, 30, 45)];
        let all = [Pieces::of(visits, 3)];
        assert_eq!(all[0].pieces.len(), 3, "{all:?}");
        for step in [1, 3, 7, 50] {
            let mut walked = Walked::new(&all);
            assert_eq!(walked.begin(PointId(0)), [false]);
            assert_eq!(walked.begin(PointId(1)), [true]);
            let mut whole = 0;
            for from in (0..50).step_by(step) {
                let [sum] = walked.pass(step as u64);
                assert_eq!(sum, all[0].between(PointId(1), from, from + step as u64), "{step} {from}");
                whole += sum;
            }
            assert_eq!(whole, 15 + 10 + 15);
        }
        assert_eq!(all[0].between(PointId(2), 0, 50), 0);
    }
}
