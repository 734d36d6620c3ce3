//! The path of the predicted run ([`crate::schedule::RunPath`]) as a sequence of stretches, each with whose it is.

use crate::cpus::Cpus;
use crate::critical_path::Weights;
use crate::predict::{PathFacts, Timing, Visitor};
use crate::program::{CallWalk, RunBreaks};
use crate::program::{FunctionRef, Program};
use crate::report::{WaitKind, wait_kind};
use crate::schedule::{Interval, OnPath, PathStretch, Runs};
use crate::time::Ticks;

/// What limits on a number of CPUs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CriticalPath {
    /// The stretches follow each other without a hole and take the whole predicted time. Otherwise the program runs ideally:
    /// the stretches are its compute operations as they lie on unlimited CPUs, with their weights.
    pub is_one_path: bool,
    /// In order of time; of an ideal run, thread by thread.
    pub stretches: Vec<Stretch>,
}

/// Part of a [`CriticalPath`], in the time of the predicted run.
#[derive(Clone, Debug, PartialEq)]
pub struct Stretch {
    /// When it begins, from the start of the run.
    pub start: Ticks,
    /// When it ends.
    pub end: Ticks,
    /// What of its length the predicted time owes to it: all, on one path.
    pub weight: f64,
    /// What happens.
    pub kind: StretchKind,
}

/// See [`Stretch`].
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum StretchKind {
    /// A thread computes.
    Computes {
        /// Index in [`Program::threads`].
        thread: u32,
        /// Innermost function, if one is known.
        function: Option<FunctionRef>,
    },
    /// Something passes.
    Passes(WaitKind),
}

/// The path on a number of CPUs. Functions that only samples know have a place on it if the program has them
/// as calls ([`crate::attribution::with_sampled_calls`]); which of several short operations is theirs is then
/// a guess.
pub fn path(timing: &Timing<'_>, cpus: Cpus) -> CriticalPath {
    match timing.route(cpus, None) {
        Some((_, route, runs)) => one_path(timing, &route, &runs),
        None => weighed(timing, cpus),
    }
}

/// The same, and reports every interval of every thread of the run that contains the path, when it is over;
/// and how long that run is. A path with weights lies in the run on unlimited CPUs.
pub fn path_and_run(
    timing: &Timing<'_>,
    cpus: Cpus,
    watcher: &mut dyn FnMut(Interval),
) -> (CriticalPath, Ticks) {
    match timing.route(cpus, Some(Box::new(&mut *watcher))) {
        Some((outcome, route, runs)) => (one_path(timing, &route, &runs), outcome.length),
        None => {
            let outcome = timing.run_watched(Cpus::Infinite, 0, Box::new(watcher));
            (weighed(timing, cpus), outcome.length)
        }
    }
}

fn one_path(timing: &Timing<'_>, route: &[PathStretch], runs: &Runs) -> CriticalPath {
    CriticalPath { is_one_path: true, stretches: resolved(timing.program(), route, runs) }
}

fn weighed(timing: &Timing<'_>, cpus: Cpus) -> CriticalPath {
    let mut segments = Segments { stretches: Vec::new() };
    timing.weigh(&[cpus], &mut segments);
    CriticalPath { is_one_path: false, stretches: segments.stretches }
}

struct Segments {
    stretches: Vec<Stretch>,
}

impl Visitor for Segments {
    fn visit<const N: usize>(&mut self, weights: &Weights<'_, N>, paths: &[PathFacts]) {
        let Some(path) = paths.first() else { return };
        for segment in weights.segments() {
            let weight = path.mean(|place| weights.of_segment(&segment, place)).ns;
            if weight == 0.0 || segment.start == segment.end {
                continue;
            }
            let kind = StretchKind::Computes { thread: segment.thread.0, function: segment.function };
            self.stretches.push(Stretch { start: segment.start, end: segment.end, weight, kind });
        }
    }
}

/// Part of a run of compute operations that is on the path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Part {
    run: u32,
    from: u64,
    to: u64,
    /// Place among the stretches.
    place: usize,
}

/// Part of a stretch in which one function is innermost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Piece {
    place: usize,
    from: u64,
    length: u64,
    thread: u32,
    function: Option<FunctionRef>,
}

fn resolved(program: &Program, route: &[PathStretch], runs: &Runs) -> Vec<Stretch> {
    let mut pieces = pieces(program, parts(route), runs);
    pieces.sort_unstable_by_key(|piece| (piece.place, piece.from));
    let mut pieces = pieces.into_iter().peekable();
    let mut stretches = Joined { now: Ticks(0), stretches: Vec::new() };
    for (place, stretch) in route.iter().enumerate() {
        match stretch.what {
            OnPath::Computes { .. } => {
                while let Some(piece) = pieces.next_if(|piece| piece.place == place) {
                    let kind = StretchKind::Computes { thread: piece.thread, function: piece.function };
                    stretches.add(piece.length, kind);
                }
            }
            OnPath::Waking => stretches.add(stretch.length.0, StretchKind::Passes(WaitKind::Waking)),
            OnPath::Delay(delay) => {
                stretches.add(stretch.length.0, StretchKind::Passes(wait_kind(program, delay)));
            }
        }
    }
    stretches.stretches
}

/// Stretches one after the other; those that go on alike are one.
struct Joined {
    now: Ticks,
    stretches: Vec<Stretch>,
}

impl Joined {
    fn add(&mut self, length: u64, kind: StretchKind) {
        if length == 0 {
            return;
        }
        let (start, end) = (self.now, Ticks(self.now.0.saturating_add(length)));
        self.now = end;
        match self.stretches.last_mut().filter(|last| last.kind == kind) {
            Some(last) => last.end = end,
            None => self.stretches.push(Stretch { start, end, weight: 1.0, kind }),
        }
    }
}

fn parts(route: &[PathStretch]) -> Vec<Part> {
    let parts = route.iter().enumerate().filter_map(|(place, stretch)| match stretch.what {
        OnPath::Computes { run, from } => {
            Some(Part { run, from, to: from.saturating_add(stretch.length.0), place })
        }
        _ => None,
    });
    let mut parts: Vec<Part> = parts.collect();
    parts.sort_unstable();
    parts
}

fn pieces(program: &Program, parts: Vec<Part>, runs: &Runs) -> Vec<Piece> {
    let mut pieces = Vec::with_capacity(parts.len());
    let mut parts = parts.as_slice();
    for (thread, of_thread) in (0u32..).zip(&program.threads) {
        let mut run = runs.first_of(thread as usize);
        let mut breaks = RunBreaks::default();
        let mut begun = false;
        let mut walk = CallWalk::default();
        // Compute operations of the present run: where each ends in it, and its function.
        let mut operations: Vec<(u64, Option<FunctionRef>)> = Vec::new();
        for operation in &of_thread.operations {
            if breaks.starts_run(operation) {
                if begun {
                    take(&mut parts, run, thread, &operations, &mut pieces);
                    run = run.saturating_add(1);
                }
                begun = true;
                operations.clear();
            }
            let computed = walk.computed(operation);
            walk.pass(operation);
            let Some((function, length)) = computed else { continue };
            let before = operations.last().map_or(0, |(end, _)| *end);
            operations.push((before.saturating_add(length.0), function));
        }
        if begun {
            take(&mut parts, run, thread, &operations, &mut pieces);
        }
    }
    pieces
}

/// The parts of this run, cut where another function begins; they are removed from the list.
fn take(
    parts: &mut &[Part],
    run: u32,
    thread: u32,
    operations: &[(u64, Option<FunctionRef>)],
    pieces: &mut Vec<Piece>,
) {
    // Most runs have none, and hardly any has many.
    let of_run = parts.iter().take_while(|part| part.run <= run).count();
    let (now, later) = parts.split_at(of_run);
    *parts = later;
    for part in now.iter().filter(|part| part.run == run) {
        let first = operations.partition_point(|(end, _)| *end <= part.from);
        let mut from = part.from;
        for (end, function) in operations.get(first..).unwrap_or_default() {
            if from >= part.to {
                break;
            }
            let to = part.to.min(*end);
            let length = to.saturating_sub(from);
            pieces.push(Piece { place: part.place, from, length, thread, function: *function });
            from = to;
        }
        if from < part.to {
            // The time after the last operation of a run: no operation says whose it is.
            pieces.push(Piece { place: part.place, from, length: part.to - from, thread, function: None });
        }
    }
}
