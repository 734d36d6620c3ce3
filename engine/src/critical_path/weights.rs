//! One sweep over the forest: the weight of a segment is the sum of the terms at and below its point.

use super::functions::FunctionTotals;
use super::lanes::{LANES, Lane, Scaled, add, scale};
use super::path::CriticalPath;
use crate::program::{FunctionRef, Operation, ThreadId};
use crate::report::Cpus;
use crate::schedule::{PointId, RunBreaks};
use crate::time::Ticks;

/// The weights of all operations for up to eight CPU counts.
#[derive(Debug)]
pub struct Weights<'s> {
    pub(super) path: &'s CriticalPath<'s>,
    cpus: &'s [Cpus],
    /// P·weight by point.
    pub(super) values: Vec<Lane>,
}

/// A compute operation on the schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Which thread computes.
    pub thread: ThreadId,
    /// Index in the thread's operations.
    pub operation: usize,
    /// Function on top of the stack.
    pub function: Option<FunctionRef>,
    /// Start on the schedule on unlimited processors.
    pub start: Ticks,
    /// End of the same.
    pub end: Ticks,
    /// Where its weight is kept.
    pub point: PointId,
}

impl<'s> Weights<'s> {
    /// O(points + terms), the same work for one and for eight CPU counts.
    pub(super) fn of(path: &'s CriticalPath<'s>, cpus: &'s [Cpus]) -> Weights<'s> {
        let forest = &path.schedule.forest;
        let mut scales = [1; LANES];
        for (scaled, cpus) in scales.iter_mut().zip(cpus) {
            *scaled = scale(*cpus);
        }
        // P·s(n) = max(n, P), by n.
        let most = path.terms.iter().map(|term| term.from.max(term.to)).max().unwrap_or(1).max(path.left);
        let dilation: Vec<Lane> = (0..=most).map(|count| scales.map(|p| p.max(i64::from(count)))).collect();

        let mut values: Vec<Lane> = vec![[0; LANES]; forest.len()];
        for term in &path.terms {
            let value = &mut values[term.point.index()];
            let (from, to) = (&dilation[term.from as usize], &dilation[term.to as usize]);
            for lane in 0..LANES {
                value[lane] = value[lane].wrapping_add(from[lane]).wrapping_sub(to[lane]);
            }
        }
        // The end of the run: what comes earlier there is time saved at the rate of what still executes.
        add(&mut values[path.schedule.end.index()], &dilation[path.left as usize]);
        // Parents have smaller numbers than their children.
        for point in (1..values.len()).rev() {
            let parent = forest.parent(PointId(point as u32)).index();
            let (upper, lower) = values.split_at_mut(point);
            add(&mut upper[parent], &lower[0]);
        }
        Weights { path, cpus, values }
    }

    /// The CPU counts these weights are for.
    pub fn cpus(&self) -> &'s [Cpus] {
        self.cpus
    }

    /// P·weight of what ends at this point, for the CPU count with this place in [`Weights::cpus`]; exact.
    pub fn scaled(&self, point: PointId, place: usize) -> i64 {
        let lane = self.values.get(point.index());
        lane.and_then(|lane| lane.get(place)).copied().unwrap_or(0)
    }

    /// −∂T_P/∂length of what ends at this point; for output.
    pub fn weight(&self, point: PointId, place: usize) -> f64 {
        let scale = self.cpus.get(place).map_or(1, |cpus| scale(*cpus));
        self.scaled(point, place) as f64 / scale as f64
    }

    /// Calls and times of all functions.
    pub fn functions(&self) -> FunctionTotals {
        FunctionTotals::of(self)
    }

    /// Gives a sum of P·weight·length its scale.
    pub(super) fn unscale(&self, value: i128, place: usize) -> Scaled {
        Scaled { value, scale: self.cpus.get(place).map_or(1, |cpus| scale(*cpus)) }
    }
}

impl CriticalPath<'_> {
    /// Every compute operation that was done, thread by thread in the order of the operations.
    pub fn segments(&self) -> impl Iterator<Item = Segment> + '_ {
        (0..self.program.threads.len()).flat_map(|thread| self.segments_of(ThreadId(thread as u32)))
    }

    fn segments_of(&self, thread: ThreadId) -> impl Iterator<Item = Segment> + '_ {
        let index = thread.0 as usize;
        let mut runs = self.schedule.runs.of_thread(thread);
        let mut breaks = RunBreaks::default();
        let mut stack: Vec<FunctionRef> = Vec::new();
        let mut run = None;
        let done = self.program.threads[index].operations.iter().take(self.schedule.done[index]);
        done.enumerate().filter_map(move |(operation, step)| {
            if breaks.starts_run(step) {
                run = runs.next().flatten();
            }
            let (length, function) = match *step {
                Operation::Exec(length) | Operation::Once(_, length) => (length, stack.last().copied()),
                Operation::ExecIn(function, length) => (length, Some(function)),
                Operation::Call(function) => {
                    stack.push(function);
                    return None;
                }
                Operation::Return => {
                    stack.pop();
                    return None;
                }
                _ => return None,
            };
            let (point, start) = run.as_mut()?;
            let segment = Segment {
                thread,
                operation,
                function,
                start: *start,
                end: Ticks(start.0.saturating_add(length.0)),
                point: *point,
            };
            *start = segment.end;
            Some(segment)
        })
    }
}
