//! The answer of `longpole slack`: lower bound, simulated gain and upper bound of improving each function.

use super::slack::function_slacks;
use super::subjects::{Subject, Subjects};
use super::{ActivityGraph, ActivityId, ActivityKind, VertexTimes, labels, zeroing};
use crate::attribution::Owners;
use crate::cpus::Cpus;
use crate::finding::{Finding, Trust};
use crate::json::{maybe_number, number};
use crate::predict::Model;
use crate::program::{FunctionRef, Program, ProgramError};
use crate::what_if::Without;
use serde::Serialize;

/// Slack of a program's functions on unlimited processors.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SlackReport {
    /// Length of the critical path, nanoseconds.
    pub length_ns: f64,
    /// Time on unlimited CPUs as all commands predict it, nanoseconds; 0: not known. The two times differ where threads
    /// take locks in another order with a scheduler.
    pub predicted_ns: f64,
    /// Functions with self time on the critical path, the largest gain first.
    pub functions: Vec<SlackRow>,
    /// Every operation that takes time, in order of threads and operations; empty unless asked for.
    pub segments: Vec<SegmentTimes>,
    /// How far the recording can be trusted.
    pub trust: Trust,
    /// Findings about the program and its schedule.
    pub findings: Vec<Finding>,
}

/// The three columns of Hollingsworth and Miller's Fig. 5: `slack ≤ zeroing ≤ critical_path`. They keep the order of locks of
/// the graph's run; `simulated_ns` does not.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SlackRow {
    /// Unique name.
    pub function: String,
    /// Self time on the critical path, nanoseconds: the most that improving the function gains with that order of locks.
    #[serde(serialize_with = "number")]
    pub critical_path_ns: f64,
    /// The slack metric, nanoseconds: the least that leaving the function out gains.
    #[serde(serialize_with = "number")]
    pub slack_ns: f64,
    /// Logical zeroing, nanoseconds: the gain of leaving the function out.
    #[serde(serialize_with = "number")]
    pub zeroing_ns: f64,
    /// Gain of leaving the function out in a simulation that decides again who gets which lock, nanoseconds; `None`:
    /// not asked for.
    #[serde(serialize_with = "maybe_number", skip_serializing_if = "Option::is_none")]
    pub simulated_ns: Option<f64>,
    /// `file:line`, if known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub location: Option<String>,
}

/// Times of one operation (1994, near-critical paths, II.C), nanoseconds.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SegmentTimes {
    /// Thread name.
    pub thread: String,
    /// Index in the thread's list of operations.
    #[serde(rename = "op")]
    pub operation: usize,
    /// What the operation does.
    #[serde(flatten)]
    pub what: super::NamedActivity,
    /// Its length.
    #[serde(serialize_with = "number")]
    pub length_ns: f64,
    /// The earliest start.
    #[serde(serialize_with = "number")]
    pub early_start_ns: f64,
    /// The earliest finish.
    #[serde(serialize_with = "number")]
    pub early_finish_ns: f64,
    /// Latest start that does not make the run longer, nanoseconds.
    #[serde(serialize_with = "number")]
    pub late_start_ns: f64,
    /// Latest finish that does not make the run longer, nanoseconds.
    #[serde(serialize_with = "number")]
    pub late_finish_ns: f64,
    /// Longest delay that does not make the run longer, nanoseconds.
    #[serde(serialize_with = "number")]
    pub total_slack_ns: f64,
    /// The longest delay that delays nothing else.
    #[serde(serialize_with = "number")]
    pub free_slack_ns: f64,
}

/// Slack of all functions, and with `segments` the times of every operation. The first `simulated` functions are also
/// simulated without their time, which takes a run each; `changed` is the program to simulate, with the functions that
/// go with each one.
///
/// # Errors
/// The program fails [`Program::check`].
pub fn slack_report(
    program: &Program,
    changed: (&Program, &Owners),
    segments: bool,
    simulated: usize,
    model: &Model,
) -> Result<SlackReport, ProgramError> {
    let graph = ActivityGraph::on(program, model)?;
    let timing = VertexTimes::of(&graph);
    let without = Without::new_for(simulated, changed, Cpus::Infinite, model)?;
    let gain_ns = |function| without.as_ref()?.gain_ns(function);
    let predicted_ns = crate::predict::Timing::new(program, model)?.time_ns(Cpus::Infinite);
    Ok(SlackReport { predicted_ns, ..slack_of(program, (&graph, &timing), segments, simulated, &gain_ns) })
}

/// The report from a program's graph; `gain_ns` simulates the program without a function.
pub fn slack_of(
    program: &Program,
    (graph, timing): (&ActivityGraph, &VertexTimes),
    segments: bool,
    simulated: usize,
    gain_ns: &dyn Fn(FunctionRef) -> Option<f64>,
) -> SlackReport {
    let slacks = function_slacks(graph, timing);
    let which: Vec<Subject> = slacks.iter().map(|slack| Subject::Function(slack.function)).collect();
    let zeroed = zeroing(graph, timing, &Subjects::of(program, graph), &which);
    let mut rows: Vec<_> = slacks.into_iter().zip(zeroed).collect();
    let name = |row: &(super::FunctionSlack, _)| labels::function_name(program, row.0.function);
    rows.sort_by(|a, b| {
        let key = |row: &(super::FunctionSlack, crate::time::Ticks)| (row.1, row.0.critical);
        key(b).cmp(&key(a)).then_with(|| name(a).cmp(&name(b)))
    });
    let functions = rows.into_iter().enumerate().map(|(place, (slack, zeroing))| SlackRow {
        function: labels::function_name(program, slack.function),
        location: program
            .functions
            .get(slack.function.0 as usize)
            .and_then(|function| function.location.clone()),
        critical_path_ns: slack.critical.as_ns_f64(),
        slack_ns: slack.slack.as_ns_f64(),
        zeroing_ns: zeroing.as_ns_f64(),
        simulated_ns: if place < simulated { gain_ns(slack.function) } else { None },
    });
    SlackReport {
        length_ns: timing.length().as_ns_f64(),
        predicted_ns: 0.0,
        functions: functions.collect(),
        segments: if segments { times(program, graph, timing) } else { Vec::new() },
        trust: program.trust,
        findings: findings(program, graph),
    }
}

/// Findings from building the program and from scheduling it.
pub(super) fn findings(program: &Program, graph: &ActivityGraph) -> Vec<Finding> {
    program.findings.iter().chain(graph.findings()).cloned().collect()
}

/// Edges of operations that may take time, in order of threads and operations.
pub(super) fn timed(graph: &ActivityGraph) -> Vec<ActivityId> {
    let is_timed = |edge: &usize| {
        matches!(graph.kind(*edge), ActivityKind::Compute | ActivityKind::Io | ActivityKind::Sleep)
    };
    let mut edges: Vec<usize> = (0..graph.edges()).filter(is_timed).collect();
    edges.sort_by_key(|edge| (graph.thread(*edge), graph.operation(*edge)));
    edges.into_iter().map(|edge| ActivityId(edge as u32)).collect()
}

fn times(program: &Program, graph: &ActivityGraph, timing: &VertexTimes) -> Vec<SegmentTimes> {
    let rows = timed(graph).into_iter().map(|edge| {
        let (activity, times) = (graph.activity(edge), timing.activity(graph, edge));
        SegmentTimes {
            thread: labels::thread_name(program, activity.thread),
            operation: activity.operation as usize,
            what: super::route::doing(program, &activity),
            length_ns: activity.length.as_ns_f64(),
            early_start_ns: times.early_start.as_ns_f64(),
            early_finish_ns: times.early_finish.as_ns_f64(),
            late_start_ns: times.late_start.as_ns_f64(),
            late_finish_ns: times.late_finish.as_ns_f64(),
            total_slack_ns: times.total_slack.as_ns_f64(),
            free_slack_ns: times.free_slack.as_ns_f64(),
        }
    });
    rows.collect()
}
