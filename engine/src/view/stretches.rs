//! The path of the predicted run ([`crate::schedule::RunPath`]) as a sequence of stretches, each with its thread and
//! either a function or a wait.

use crate::cpus::Cpus;
use crate::critical_path::Weights;
use crate::predict::{PathFacts, Timing, Visitor};
use crate::program::{CallWalk, RunBreaks};
use crate::program::{FunctionRef, Program};
use crate::report::{WaitKind, wait_kind};
use crate::schedule::{Interval, OnPath, PathStretch, Runs};
use crate::time::Ticks;

/// The critical path on a number of CPUs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PathView {
    /// Whether the stretches follow each other without a hole and take the whole predicted time. Otherwise the program runs
    /// ideally: stretches are its compute operations in the schedule on unlimited CPUs, with their weights.
    pub is_one_path: bool,
    /// The stretches in order of time; for an ideal run, thread by thread.
    pub stretches: Vec<ViewStretch>,
}

/// Part of a [`PathView`], in the time of the predicted run.
#[derive(Clone, Debug, PartialEq)]
pub struct ViewStretch {
    /// Its beginning, from the start of the run.
    pub start: Ticks,
    /// Its end.
    pub end: Ticks,
    /// The share of the stretch's length that counts in the predicted time: 1 on a single path.
    pub weight: f64,
    /// What the stretch contains.
    pub kind: StretchKind,
}

/// The kinds of content of a stretch.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum StretchKind {
    /// A thread computes.
    Computes {
        /// Index in [`Program::threads`].
        thread: u32,
        /// Innermost function, if a function is known.
        function: Option<FunctionRef>,
    },
    /// Time passes without computing.
    Passes(WaitKind),
}

/// The path on a number of CPUs. Functions that only samples show are on it if the program has them as calls
/// ([`crate::attribution::with_sampled_calls`]); which of several short operations belongs to them is then a guess.
pub fn path(timing: &Timing<'_>, cpus: Cpus) -> PathView {
    match timing.route(cpus, None) {
        Some((_, route, runs)) => one_path(timing, &route, &runs),
        None => weighed(timing, cpus),
    }
}

/// The path, and the length of the run that contains it. Reports every interval of every thread of that run when the
/// interval ends. A path with weights lies in the run on unlimited CPUs.
pub fn path_and_run(timing: &Timing<'_>, cpus: Cpus, watcher: &mut dyn FnMut(Interval)) -> (PathView, Ticks) {
    match timing.route(cpus, Some(Box::new(&mut *watcher))) {
        Some((outcome, route, runs)) => (one_path(timing, &route, &runs), outcome.length),
        None => {
            let outcome = timing.run_watched(Cpus::Infinite, 0, Box::new(watcher));
            (weighed(timing, cpus), outcome.length)
        }
    }
}

fn one_path(timing: &Timing<'_>, route: &[PathStretch], runs: &Runs) -> PathView {
    PathView { is_one_path: true, stretches: resolved(timing.program(), route, runs) }
}

fn weighed(timing: &Timing<'_>, cpus: Cpus) -> PathView {
    let mut segments = Segments { stretches: Vec::new() };
    timing.weigh(&[cpus], &mut segments);
    PathView { is_one_path: false, stretches: segments.stretches }
}

struct Segments {
    stretches: Vec<ViewStretch>,
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
            self.stretches.push(ViewStretch { start: segment.start, end: segment.end, weight, kind });
        }
    }
}

/// A part of a run of compute operations that is on the path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Part {
    run: u32,
    from: u64,
    to: u64,
    /// Index of the stretch.
    place: usize,
}

/// Part of a stretch in which one function is the innermost one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Piece {
    place: usize,
    from: u64,
    length: u64,
    thread: u32,
    function: Option<FunctionRef>,
}

fn resolved(program: &Program, route: &[PathStretch], runs: &Runs) -> Vec<ViewStretch> {
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

/// Appends stretches; equal neighbours become one.
struct Joined {
    now: Ticks,
    stretches: Vec<ViewStretch>,
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
            None => self.stretches.push(ViewStretch { start, end, weight: 1.0, kind }),
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
        // Compute operations of the present run: each one's end, as an offset in the run, and its function.
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

/// Cuts the parts of this run at places where another function begins, and removes them from `parts`.
fn take(
    parts: &mut &[Part],
    run: u32,
    thread: u32,
    operations: &[(u64, Option<FunctionRef>)],
    pieces: &mut Vec<Piece>,
) {
    // A linear search, since most runs have no part and hardly any has many.
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
            // Time after the last operation of a run belongs to no operation.
            pieces.push(Piece { place: part.place, from, length: part.to - from, thread, function: None });
        }
    }
}
