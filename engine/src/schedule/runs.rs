//! Runs: the compute operations of a thread that follow each other with nothing but calls and returns between them.
//! A run is a *segment* of the paper (2001, section 2.1: "the execution for a thread between two synchronizations"),
//! one point of the forest, and all its operations have the same weight.

use super::PointId;
use crate::program::{Program, RunBreaks, ThreadId};
use crate::time::Ticks;

/// Marks a run that has not happened (yet), or a `once` that another thread computed.
const NOT_RUN: u32 = u32::MAX;

/// For each run of compute operations, in the order of threads and operations: when it started, and the point of its
/// end.
#[derive(Clone, Debug, Default)]
pub struct Runs {
    /// First run of each thread, and the end of the last.
    first: Vec<u32>,
    points: Vec<u32>,
    starts: Vec<u64>,
}

impl Runs {
    /// Room for every run that the program can have.
    pub(super) fn of(program: &Program) -> Runs {
        let mut first = Vec::with_capacity(program.threads.len() + 1);
        let mut count: u32 = 0;
        for thread in &program.threads {
            first.push(count);
            let mut breaks = RunBreaks::default();
            for operation in &thread.operations {
                count = count.saturating_add(u32::from(breaks.starts_run(operation)));
            }
        }
        first.push(count);
        Runs { first, points: vec![NOT_RUN; count as usize], starts: vec![0; count as usize] }
    }

    pub(crate) fn len(&self) -> usize {
        self.points.len()
    }

    /// Number of the thread's first run.
    pub(crate) fn first_of(&self, thread: usize) -> u32 {
        self.first[thread]
    }

    pub(super) fn begin(&mut self, run: u32, point: PointId, start: u64) {
        self.points[run as usize] = point.0;
        self.starts[run as usize] = start;
    }

    /// Fills in runs that happened in `other` only: another thread may compute a `once` there.
    pub(crate) fn add(&mut self, other: &Runs) {
        let others = other.points.iter().zip(&other.starts);
        for ((point, start), (other, begun)) in self.points.iter_mut().zip(&mut self.starts).zip(others) {
            if *point == NOT_RUN {
                (*point, *start) = (*other, *begun);
            }
        }
    }

    /// The point of a run's end, if the run happened.
    pub(super) fn point(&self, run: u32) -> Option<PointId> {
        self.points.get(run as usize).copied().filter(|point| *point != NOT_RUN).map(PointId)
    }

    /// The runs of a thread in order: the point of each end and when the run started; `None` if it did not happen.
    pub fn of_thread(&self, thread: ThreadId) -> impl Iterator<Item = Option<(PointId, Ticks)>> + '_ {
        let index = thread.0 as usize;
        let bounds = self.first.get(index).zip(self.first.get(index + 1));
        let range = bounds.map_or(0..0, |(from, to)| *from as usize..*to as usize);
        range.map(|run| {
            let point = self.points[run];
            (point != NOT_RUN).then(|| (PointId(point), Ticks(self.starts[run])))
        })
    }
}
