//! The answer of `longpole paths`: the longest paths, and upper bounds on gains by them.

use super::benefit::benefits;
use super::route::{Stay, route};
use super::slack_report::{findings, timed};
use super::subjects::Subjects;
use super::{
    ActivityGraph, ActivityId, ActivityKind, NamedActivity, NearPath, NearPaths, PathCounts, VertexTimes,
    labels,
};
use crate::attribution::Owners;
use crate::cpus::Cpus;
use crate::finding::{Finding, Trust};
use crate::json::{maybe_number, number};
use crate::predict::Model;
use crate::program::{FunctionRef, Program, ProgramError};
use crate::time::Ticks;
use crate::what_if::Without;
use serde::Serialize;

/// Which paths to list, and what to report about them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PathsWanted {
    /// Largest number of paths to list.
    pub most: usize,
    /// List only paths that are shorter than the critical path by at most this share of it.
    pub within: Option<f64>,
    /// Give the routes of this number of paths.
    pub routes: usize,
    /// Show the path with this rank, from 1, edge by edge.
    pub shown: Option<usize>,
    /// Report for every operation how many of the paths go through it.
    pub segments: bool,
    /// Number of functions to simulate the program without, one function at a time.
    pub simulated: usize,
}

/// The longest paths of a program on unlimited processors.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PathsReport {
    /// Length of the critical path, nanoseconds.
    pub length_ns: f64,
    /// Time on unlimited CPUs as all commands predict it, nanoseconds; 0: not known. The two times differ where threads
    /// take locks in another order with a scheduler.
    pub predicted_ns: f64,
    /// Numbers of paths.
    pub counts: PathCounts,
    /// The paths, longest first.
    pub paths: Vec<PathRow>,
    /// Whether further paths fit `PathsWanted::within` but exceed `PathsWanted::most`.
    pub more: bool,
    /// The 512 functions, threads, locks, classes, processes and CPUs with most time on the critical path, largest benefit
    /// first.
    pub benefit: Vec<BenefitRow>,
    /// The path asked for edge by edge; `None` if there is no such rank, or none was asked for.
    pub shown: Option<ShownPath>,
    /// Every operation that takes time; empty unless asked for.
    pub segments: Vec<SegmentPaths>,
    /// How far the recording can be trusted.
    pub trust: Trust,
    /// Findings about the program and its schedule.
    pub findings: Vec<Finding>,
}

/// A path.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PathRow {
    /// 1 for the critical path.
    pub rank: usize,
    /// Its length, nanoseconds.
    #[serde(serialize_with = "number")]
    pub length_ns: f64,
    /// Its length as a share of that of the critical path.
    #[serde(serialize_with = "number")]
    pub nearness: f64,
    /// Its route through the threads; `None` beyond [`PathsWanted::routes`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub route: Option<Vec<Stay>>,
}

/// Upper bounds on the gain from improving a part of the program (1994, section VI).
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct BenefitRow {
    /// What the row is about: `function`, `thread`, `lock`, `class` (compute, io, wait), `process` or `cpu`.
    pub kind: &'static str,
    /// Its name.
    pub name: String,
    /// Its time on the critical path: the Critical Path Metric, nanoseconds.
    #[serde(serialize_with = "number")]
    pub critical_path_ns: f64,
    /// The Maximum Benefit Metric over the listed paths, nanoseconds.
    #[serde(serialize_with = "number")]
    pub maximum_benefit_ns: f64,
    /// Gain of leaving the function out in a simulation that decides locks again, nanoseconds; `None`: not a function, or not
    /// asked for. The two metrics keep the order of locks of the graph's run.
    #[serde(serialize_with = "maybe_number", skip_serializing_if = "Option::is_none")]
    pub simulated_ns: Option<f64>,
    /// Whether more paths would not change the metric.
    pub settled: bool,
    /// Number of listed critical paths that contain the subject.
    pub critical_paths: usize,
    /// Number of listed shorter paths that contain the subject.
    pub near_paths: usize,
    /// `file:line` of a function, if known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub location: Option<String>,
}

/// A path, edge by edge.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ShownPath {
    /// 1 for the critical path.
    pub rank: usize,
    /// Its length, nanoseconds.
    #[serde(serialize_with = "number")]
    pub length_ns: f64,
    /// Its edges from start to end.
    pub edges: Vec<ShownEdge>,
}

/// An edge of a path.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ShownEdge {
    /// Thread name; for a wake-up, the woken thread.
    pub thread: String,
    /// Index in the thread's list of operations.
    #[serde(rename = "op")]
    pub operation: usize,
    /// How the path enters the edge's thread, if it enters it at this edge.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// What takes time during the edge; `None` if the edge takes none.
    #[serde(flatten)]
    pub what: Option<NamedActivity>,
    /// Length of the path up to this edge, nanoseconds.
    #[serde(serialize_with = "number")]
    pub start_ns: f64,
    /// Length of the edge, nanoseconds.
    #[serde(serialize_with = "number")]
    pub length_ns: f64,
}

/// Numbers of listed paths that go through an operation.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SegmentPaths {
    /// Thread name.
    pub thread: String,
    /// Index in the thread's list of operations.
    #[serde(rename = "op")]
    pub operation: usize,
    /// What the operation does.
    #[serde(flatten)]
    pub what: NamedActivity,
    /// Length of the operation, nanoseconds.
    #[serde(serialize_with = "number")]
    pub length_ns: f64,
    /// Number of listed critical paths through the operation.
    pub critical_paths: u32,
    /// Number of listed shorter paths through the operation.
    pub near_paths: u32,
}

/// The longest paths of a program. `changed` is the program to simulate, with the functions that go with each one.
///
/// # Errors
/// The program fails [`Program::check`].
pub fn paths_report(
    program: &Program,
    changed: (&Program, &Owners),
    wanted: &PathsWanted,
    model: &Model,
) -> Result<PathsReport, ProgramError> {
    let graph = ActivityGraph::on(program, model)?;
    let timing = VertexTimes::of(&graph);
    let without = Without::new_for(wanted.simulated, changed, Cpus::Infinite, model)?;
    let gain_ns = |function| without.as_ref()?.gain_ns(function);
    let predicted_ns = crate::predict::Timing::new(program, model)?.time_ns(Cpus::Infinite);
    Ok(PathsReport { predicted_ns, ..paths_of(program, (&graph, &timing), wanted, &gain_ns) })
}

/// The report from a program's graph; `gain_ns` simulates the program without a function.
pub fn paths_of(
    program: &Program,
    (graph, timing): (&ActivityGraph, &VertexTimes),
    wanted: &PathsWanted,
    gain_ns: &dyn Fn(FunctionRef) -> Option<f64>,
) -> PathsReport {
    let length = timing.length();
    let mut found = NearPaths::new(graph, timing, wanted.most.max(wanted.shown.unwrap_or(0)).min(EXPECTED));
    let least = wanted.within.map(|share| least_length(length, share));
    let mut paths = Vec::new();
    let mut more = false;
    while let Some(next) = found.peek() {
        if least.is_some_and(|least| next < least) {
            break;
        }
        if paths.len() == wanted.most {
            more = true;
            break;
        }
        let Some(path) = found.next() else { break };
        let edges = (path.number < wanted.routes).then(|| found.edges(path.number));
        paths.push(path_row(program, graph, length, path, edges.as_deref()));
    }
    let subjects = Subjects::of(program, graph);
    let benefit = benefits(graph, timing, &found, &subjects);
    let mut left = wanted.simulated;
    let mut simulated = |subject| match subject {
        super::Subject::Function(function) if left > 0 => {
            left -= 1;
            gain_ns(function)
        }
        _ => None,
    };
    let benefit = benefit.into_iter().map(|benefit| BenefitRow {
        kind: labels::kind(benefit.subject),
        name: labels::name(program, benefit.subject),
        location: match benefit.subject {
            super::Subject::Function(function) => {
                program.functions.get(function.0 as usize).and_then(|function| function.location.clone())
            }
            _ => None,
        },
        critical_path_ns: benefit.critical.as_ns_f64(),
        maximum_benefit_ns: benefit.maximum.as_ns_f64(),
        simulated_ns: simulated(benefit.subject),
        settled: benefit.settled(),
        critical_paths: benefit.critical_paths,
        near_paths: benefit.near_paths,
    });
    PathsReport {
        length_ns: length.as_ns_f64(),
        predicted_ns: 0.0,
        counts: PathCounts::of(graph, timing),
        benefit: benefit.collect(),
        segments: if wanted.segments { segments(program, graph, timing, &found) } else { Vec::new() },
        shown: wanted.shown.and_then(|rank| shown(program, graph, timing, &mut found, rank)),
        paths,
        more,
        trust: program.trust,
        findings: findings(program, graph),
    }
}

/// The row for one path, with its route if the path's edges are given. `longest` is the length of the critical path.
pub fn path_row(
    program: &Program,
    graph: &ActivityGraph,
    longest: Ticks,
    path: NearPath,
    edges: Option<&[ActivityId]>,
) -> PathRow {
    PathRow {
        rank: path.number + 1,
        length_ns: path.length.as_ns_f64(),
        nearness: if longest > Ticks(0) { path.length.0 as f64 / longest.0 as f64 } else { 1.0 },
        route: edges.map(|edges| route(program, graph, edges)),
    }
}

/// Largest number of detours computed at first.
const EXPECTED: usize = 1 << 20;

/// The least length of a path that is shorter than `length` by at most this share.
fn least_length(length: Ticks, share: f64) -> Ticks {
    let lacking = length.0 as f64 * share.clamp(0.0, 1.0);
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "not negative; the cast saturates"
    )]
    let lacking = lacking.floor() as u64;
    Ticks(length.0.saturating_sub(lacking))
}

fn shown(
    program: &Program,
    graph: &ActivityGraph,
    timing: &VertexTimes,
    found: &mut NearPaths<'_>,
    rank: usize,
) -> Option<ShownPath> {
    let number = rank.checked_sub(1)?;
    // Earlier paths may not have been given yet.
    while found.found() <= number {
        found.next()?;
    }
    let mut edges = Vec::new();
    let mut start = Ticks(0);
    let mut thread = None;
    for edge in found.edges(number) {
        let activity = graph.activity(edge);
        let comes = thread.replace(activity.thread) != Some(activity.thread);
        let takes_time = activity.length > Ticks(0);
        if activity.kind != ActivityKind::End && (takes_time || comes) {
            edges.push(ShownEdge {
                thread: labels::thread_name(program, activity.thread),
                operation: activity.operation as usize,
                what: takes_time.then(|| super::route::doing(program, &activity)),
                by: comes.then(|| labels::by(program, graph, &activity)),
                start_ns: start.as_ns_f64(),
                length_ns: activity.length.as_ns_f64(),
            });
        }
        start = Ticks(start.0.saturating_add(activity.length.0));
    }
    debug_assert!(start <= timing.length(), "a path is not longer than the longest");
    Some(ShownPath { rank, length_ns: start.as_ns_f64(), edges })
}

fn segments(
    program: &Program,
    graph: &ActivityGraph,
    timing: &VertexTimes,
    found: &NearPaths<'_>,
) -> Vec<SegmentPaths> {
    let through = found.through(graph, timing);
    let row = |edge: ActivityId| {
        let (activity, through) = (graph.activity(edge), through[edge.0 as usize]);
        SegmentPaths {
            thread: labels::thread_name(program, activity.thread),
            operation: activity.operation as usize,
            what: super::route::doing(program, &activity),
            length_ns: activity.length.as_ns_f64(),
            critical_paths: through.critical,
            near_paths: through.near,
        }
    };
    timed(graph).into_iter().map(row).collect()
}
