//! One sweep over the forest: the weight of a segment is the sum of the terms at and below its point.

use super::function_totals::FunctionTotals;
use super::lanes::{LANES, Lane, Scaled, Sum, add, subtract};
use super::path::CriticalPath;
use super::pieces::{Pieces, Walked};
use crate::attribution::Attribution;
use crate::cpus::Cpus;
use crate::program::{CallWalk, RunBreaks};
use crate::program::{FunctionRef, Program, ThreadId};
use crate::schedule::{PointId, Runs, Schedule};
use crate::time::Ticks;

/// The weights of all operations for a group of CPU counts: up to eight on one shared schedule, or one count on its own
/// schedule.
#[derive(Debug)]
pub struct Weights<'s, const N: usize = LANES> {
    pub(super) program: &'s Program,
    pub(super) runs: &'s Runs,
    /// For each thread: number of operations that it executed.
    pub(super) done: &'s [usize],
    cpus: &'s [Cpus],
    /// The factors of the scaled weights.
    scales: [i64; N],
    values: Values<'s, N>,
    /// The largest |scaled weight|.
    pub(super) peak: u64,
    /// Ticks summed over all executing threads; spinning counts as executing.
    pub(super) executed: u64,
}

/// Scaled weight by point, or pieces of runs on paths. Narrow if that suffices: memory bandwidth limits the sweep.
#[derive(Debug)]
enum Values<'s, const N: usize> {
    Narrow(Vec<Lane<i32, N>>),
    Wide(Vec<Lane<i64, N>>),
    Pieces(&'s [Pieces; N]),
}

/// A compute operation in the schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Index of the thread.
    pub thread: ThreadId,
    /// Index in the thread's operations.
    pub operation: usize,
    /// The function on top of the stack.
    pub function: Option<FunctionRef>,
    /// Start in the schedule on unlimited processors.
    pub start: Ticks,
    /// End in the same schedule.
    pub end: Ticks,
    /// The point whose weight is the segment's weight.
    pub point: PointId,
    /// Length of the segment's run of operations before the segment, ticks.
    pub offset: Ticks,
}

impl<'s> Weights<'s> {
    /// Computes the weights in O(points + terms); eight CPU counts take as long as one.
    pub(super) fn of(path: &'s CriticalPath<'s>, cpus: &'s [Cpus]) -> Weights<'s> {
        let mut scales = [1; LANES];
        for (scaled, cpus) in scales.iter_mut().zip(cpus) {
            *scaled = path.scale(*cpus);
        }
        // No sum of terms exceeds the sum of their absolute values, and |max(a, P) − max(b, P)| ≤ |a − b|.
        let largest = scales.iter().copied().max().unwrap_or(1).max(i64::from(path.left));
        let bound = path.terms.iter().fold(largest.unsigned_abs(), |sum, term| {
            sum.saturating_add(u64::from(term.from.abs_diff(term.to)))
        });
        let (values, peak) = if bound <= i32::MAX as u64 {
            let values = swept(path, &scales);
            let peak = values.iter().flatten().map(|value: &i32| value.unsigned_abs()).max();
            (Values::Narrow(values), u64::from(peak.unwrap_or(0)))
        } else {
            let values = swept(path, &scales);
            let peak = values.iter().flatten().map(|value: &i64| value.unsigned_abs()).max();
            (Values::Wide(values), peak.unwrap_or(0))
        };
        let (program, executed) = (path.program, path.executed());
        let (runs, done) = (&path.schedule.runs, path.schedule.done.as_slice());
        Weights { program, runs, done, cpus, scales, values, peak, executed }
    }
}

impl<'s> Weights<'s, 1> {
    /// Makes weights of numbers by point that were computed before; `scale` is their factor.
    pub(super) fn given(
        (program, schedule): (&'s Program, &'s Schedule),
        cpus: &'s [Cpus],
        scale: i64,
        values: Vec<Lane<i64, 1>>,
        executed: u64,
    ) -> Weights<'s, 1> {
        let peak = values.iter().flatten().map(|value| value.unsigned_abs()).max().unwrap_or(0);
        let (runs, done) = (&schedule.runs, schedule.done.as_slice());
        Weights { program, runs, done, cpus, scales: [scale], values: Values::Wide(values), peak, executed }
    }
}

impl<'s, const N: usize> Weights<'s, N> {
    /// Weights of several runs of the program: which parts of each run of compute operations are on each run's path.
    pub(super) fn on_paths(
        program: &'s Program,
        runs: &'s Runs,
        done: &'s [usize],
        cpus: &'s [Cpus],
        pieces: &'s [Pieces; N],
    ) -> Weights<'s, N> {
        // Everything on a path is as long as the program's run, which fits.
        let (peak, executed) = (1, i64::MAX as u64);
        let values = Values::Pieces(pieces);
        Weights { program, runs, done, cpus, scales: [1; N], values, peak, executed }
    }

    /// All executed compute operations, by thread in the order of operations.
    pub fn segments(&self) -> impl Iterator<Item = Segment> + '_ {
        segments(self.program, self.runs, self.done)
    }

    /// The CPU counts for which there are weights, in order.
    pub fn cpus(&self) -> &'s [Cpus] {
        self.cpus
    }

    /// Scaled weight of the step that ends at this point, for the CPU count with this index in [`Weights::cpus`].
    ///
    /// For weights on one schedule the factor is P, and the number exact.
    pub fn scaled(&self, point: PointId, place: usize) -> i64 {
        self.lane(point).get(place).copied().unwrap_or(0)
    }

    /// Scaled weights of the step that ends at this point.
    #[inline]
    pub(super) fn lane(&self, point: PointId) -> Lane<i64, N> {
        let none = [0; N];
        match &self.values {
            Values::Narrow(values) => values.get(point.index()).map_or(none, |lane| lane.map(i64::from)),
            Values::Wide(values) => values.get(point.index()).copied().unwrap_or(none),
            Values::Pieces(_) => none,
        }
    }

    /// A walk through the pieces on paths, if weights are from paths.
    pub(super) fn walked(&self) -> Option<Walked<'s, N>> {
        match self.values {
            Values::Pieces(pieces) => Some(Walked::new(pieces)),
            _ => None,
        }
    }

    /// The weight of a compute operation; for paths, the part of it on the path.
    pub fn of_segment(&self, segment: &Segment, place: usize) -> f64 {
        let Values::Pieces(pieces) = self.values else { return self.weight(segment.point, place) };
        let (from, length) = (segment.offset.0, segment.end.0.saturating_sub(segment.start.0));
        let Some(pieces) = pieces.get(place).filter(|_| length > 0) else { return 0.0 };
        pieces.between(segment.point, from, from.saturating_add(length)) as f64 / length as f64
    }

    /// ∂T_P/∂length of the step that ends at this point, for output; 0 for paths.
    pub fn weight(&self, point: PointId, place: usize) -> f64 {
        self.scaled(point, place) as f64 / self.scale(place) as f64
    }

    fn scale(&self, place: usize) -> i64 {
        self.scales.get(place).copied().unwrap_or(1)
    }

    /// Calls and times of all rows.
    pub fn totals(&self, attribution: &Attribution) -> FunctionTotals<N> {
        FunctionTotals::of(self, attribution)
    }

    /// Divides a sum of scaled weight · length by the scale.
    pub(super) fn unscale(&self, value: i128, place: usize) -> Scaled {
        Scaled { value, scale: self.scale(place) }
    }
}

/// P·weight by point. Sums of all terms must fit into `S`.
fn swept<S: Sum>(path: &CriticalPath<'_>, scales: &[i64; LANES]) -> Vec<Lane<S, LANES>> {
    let forest = &path.schedule.forest;
    // P·s(n) = max(n, P), by n.
    let most = path.terms.iter().map(|term| term.from.max(term.to)).max().unwrap_or(1).max(path.left);
    let dilation: Vec<Lane<S, LANES>> = (0..=i64::from(most))
        .map(|count| scales.map(|scale| S::from_wide(i128::from(scale.max(count)))))
        .collect();
    let mut values = vec![[S::default(); LANES]; forest.len()];
    for term in &path.terms {
        let value = &mut values[term.point.index()];
        add(value, &dilation[term.from as usize]);
        subtract(value, &dilation[term.to as usize]);
    }
    // At the end of the run, an earlier end saves time at the rate of the threads that still execute.
    add(&mut values[path.schedule.end.index()], &dilation[path.left as usize]);
    // Parents have smaller numbers than their children.
    for point in (1..values.len()).rev() {
        let parent = forest.parent(PointId(point as u32)).index();
        let (upper, lower) = values.split_at_mut(point);
        add(&mut upper[parent], &lower[0]);
    }
    values
}

impl CriticalPath<'_> {
    /// All executed compute operations, by thread in the order of operations.
    pub fn segments(&self) -> impl Iterator<Item = Segment> + '_ {
        segments(self.program, &self.schedule.runs, &self.schedule.done)
    }
}

/// All executed compute operations, by thread in the order of operations.
pub(super) fn segments<'s>(
    program: &'s Program,
    runs: &'s Runs,
    done: &'s [usize],
) -> impl Iterator<Item = Segment> + 's {
    (0..program.threads.len()).flat_map(|thread| segments_of(program, runs, done, ThreadId(thread as u32)))
}

fn segments_of<'s>(
    program: &'s Program,
    runs: &'s Runs,
    done: &'s [usize],
    thread: ThreadId,
) -> impl Iterator<Item = Segment> + 's {
    let index = thread.0 as usize;
    let mut runs = runs.of_thread(thread);
    let mut breaks = RunBreaks::default();
    let mut walk = CallWalk::default();
    let mut run = None;
    let mut offset = Ticks(0);
    let done = program.threads[index].operations.iter().take(done[index]);
    done.enumerate().filter_map(move |(operation, step)| {
        if breaks.starts_run(step) {
            run = runs.next().flatten();
            offset = Ticks(0);
        }
        let computed = walk.computed(step);
        walk.pass(step);
        let (function, length) = computed?;
        let (point, start) = run.as_mut()?;
        let segment = Segment {
            thread,
            operation,
            function,
            start: *start,
            end: Ticks(start.0.saturating_add(length.0)),
            point: *point,
            offset,
        };
        *start = segment.end;
        offset.0 = offset.0.saturating_add(length.0);
        Some(segment)
    })
}
