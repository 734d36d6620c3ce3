//! Metrics that show which function to improve, side by side on one program, as in Hollingsworth and Miller, "Slack: A New
//! Performance Metric for Parallel Programs", 1994. They are: CPU profile, normalized processor time (Quartz, 1989), extended
//! critical path (2001), slack, logical zeroing and maximum benefit (1994), and the simulated gain of leaving the function
//! out. All are for functions' self time. Profile, Quartz, extended critical path and simulation are for the predicted run on
//! a number of processors. The other three are defined on the run on unlimited ones, with its order of locks.

use crate::attribution::{Grouping, Owners, attributed_to_users, with_sampled_calls};
use crate::cpus::Cpus;
use crate::finding::{Finding, Trust};
use crate::graph::{ActivityGraph, PathsWanted, VertexTimes, paths_of, slack_of};
use crate::parallelism::{ParallelismRowKind, predicted};
use crate::predict::Model;
use crate::program::{FunctionRef, Program, ProgramError};
use crate::report::{Detail, report_by};
use crate::what_if::Without;
use rustc_hash::FxHashMap;

/// Number of longest paths for the maximum benefit.
const PATHS: usize = 100;

/// A metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Metric {
    /// CPU time.
    Profile,
    /// CPU time ÷ busy processors.
    Quartz,
    /// Self time on the extended critical path.
    CriticalPath,
    /// The slack metric: the least gain.
    Slack,
    /// Logical zeroing: the gain with the same order of locks.
    Zeroing,
    /// Maximum benefit: the gain before another of the longest paths is the longest.
    Benefit,
}

impl Metric {
    /// All metrics.
    pub const ALL: [Metric; 6] = [
        Metric::Profile,
        Metric::Quartz,
        Metric::CriticalPath,
        Metric::Slack,
        Metric::Zeroing,
        Metric::Benefit,
    ];
}

/// Functions by all metrics.
#[derive(Clone, Debug, PartialEq)]
pub struct Metrics {
    /// The processors of the run.
    pub cpus: Cpus,
    /// Length of the run, ns.
    pub time_ns: f64,
    /// Length of the run on unlimited processors, ns.
    pub unlimited_ns: f64,
    /// All CPU time of the run, ns.
    pub busy_ns: f64,
    /// The largest simulated gain first, then the largest share by any metric.
    pub functions: Vec<MetricsRow>,
    /// How far the results can be trusted, given the recording.
    pub trust: Trust,
    /// Findings about the program and its schedule.
    pub findings: Vec<Finding>,
}

/// A function with its metrics.
#[derive(Clone, Debug, PartialEq)]
pub struct MetricsRow {
    /// Unique name.
    pub function: String,
    /// `file:line`, if known.
    pub location: Option<String>,
    /// Whether the function is one that the program's author cannot change.
    pub is_foreign: bool,
    /// Values in the order of [`Metric::ALL`], ns.
    pub values_ns: [f64; 6],
    /// Gain of leaving the function out in a simulation, ns; `None`: not asked for.
    pub simulated_ns: Option<f64>,
}

impl MetricsRow {
    /// The value of a metric, ns.
    pub fn value_ns(&self, metric: Metric) -> f64 {
        self.values_ns[metric as usize]
    }
}

impl Metrics {
    /// The total of which a metric's values are shares, ns.
    pub fn whole_ns(&self, metric: Metric) -> f64 {
        match metric {
            Metric::Profile => self.busy_ns,
            Metric::Quartz | Metric::CriticalPath => self.time_ns,
            Metric::Slack | Metric::Zeroing | Metric::Benefit => self.unlimited_ns,
        }
    }

    /// The share of a function by a metric.
    pub fn share(&self, row: &MetricsRow, metric: Metric) -> f64 {
        let whole = self.whole_ns(metric);
        if whole > 0.0 { row.value_ns(metric) / whole } else { 0.0 }
    }

    /// Of the functions that the program's author can change, the one with the largest value of `metric`; `None` if no
    /// value is above 0.
    pub fn first(&self, metric: Metric) -> Option<&MetricsRow> {
        let own = self.functions.iter().filter(|row| !row.is_foreign && row.value_ns(metric) > 0.0);
        // `max_by` returns the last of equal values, so the order is reversed to get the first.
        own.rev().max_by(|a, b| a.value_ns(metric).total_cmp(&b.value_ns(metric)))
    }

    fn most(&self, row: &MetricsRow) -> f64 {
        Metric::ALL.iter().map(|metric| self.share(row, *metric)).fold(0.0, f64::max)
    }
}

/// Compares the metrics of a program. The first function by each metric, and others up to `simulated` in all, are also
/// simulated without their time, which takes a run each. A standard function's computing counts for its user's
/// function, unless `all` is set.
///
/// # Errors
/// The program fails [`Program::check`].
pub fn metrics(
    program: &Program,
    all: bool,
    cpus: Cpus,
    simulated: usize,
    model: &Model,
) -> Result<Metrics, ProgramError> {
    let owners = if all { Owners::themselves(program) } else { Owners::of(program) };
    let changed = with_sampled_calls(program.clone());
    let program = &if all { program.clone() } else { attributed_to_users(program.clone()) };
    let expanded = with_sampled_calls(program.clone());
    let graph = ActivityGraph::on(&expanded, model)?;
    let timing = VertexTimes::of(&graph);
    let slack = slack_of(&expanded, (&graph, &timing), false, 0, &|_| None);
    let wanted =
        PathsWanted { most: PATHS, within: None, routes: 0, shown: None, segments: false, simulated: 0 };
    let paths = paths_of(&expanded, (&graph, &timing), &wanted, &|_| None);
    drop((graph, timing));
    let quartz = predicted(program, cpus, model)?;
    let report = report_by(program, &[cpus], Detail::Functions, Grouping::Function, model);
    let mut rows = Rows::default();
    for row in quartz.rows.iter().filter(|row| row.kind == ParallelismRowKind::Function) {
        let Some(name) = &row.name else { continue };
        let to = rows.of(name, row.location.as_deref());
        to.is_foreign = row.is_foreign;
        to.values_ns[Metric::Profile as usize] = row.own.busy.ns as f64;
        to.values_ns[Metric::Quartz as usize] = row.normalized_self_ns as f64;
    }
    for row in report.results.iter().flat_map(|result| &result.functions) {
        rows.of(&row.function, row.location.as_deref()).values_ns[Metric::CriticalPath as usize] = row.tet_ns;
    }
    for row in &slack.functions {
        let to = rows.of(&row.function, row.location.as_deref());
        to.values_ns[Metric::Slack as usize] = row.slack_ns;
        to.values_ns[Metric::Zeroing as usize] = row.zeroing_ns;
    }
    for row in paths.benefit.iter().filter(|row| row.kind == "function") {
        let to = rows.of(&row.name, row.location.as_deref());
        to.values_ns[Metric::Benefit as usize] = row.maximum_benefit_ns;
    }
    let threads = quartz.rows.iter().filter(|row| row.kind == ParallelismRowKind::Thread);
    let mut metrics = Metrics {
        cpus,
        time_ns: report.results.first().map_or(0.0, |result| result.time_ns),
        unlimited_ns: slack.length_ns,
        busy_ns: threads.map(|row| row.own.busy.ns as f64).sum(),
        functions: rows.rows,
        trust: program.trust,
        findings: slack.findings,
    };
    metrics.simulate((&changed, &owners), simulated, model)?;
    Ok(metrics)
}

impl Metrics {
    fn simulate(
        &mut self,
        (program, owners): (&Program, &Owners),
        most: usize,
        model: &Model,
    ) -> Result<(), ProgramError> {
        let mut rows = std::mem::take(&mut self.functions);
        rows.sort_by(|a, b| self.most(b).total_cmp(&self.most(a)).then_with(|| a.function.cmp(&b.function)));
        self.functions = rows;
        let firsts: Vec<&str> =
            Metric::ALL.iter().filter_map(|metric| Some(self.first(*metric)?.function.as_str())).collect();
        let is_asked = |(place, row): &(usize, &MetricsRow)| {
            *place < most && self.most(row) > 0.0 || firsts.contains(&row.function.as_str())
        };
        let asked: Vec<usize> =
            self.functions.iter().enumerate().filter(is_asked).map(|(place, _)| place).collect();
        let by_name: FxHashMap<&str, u32> =
            program.functions.iter().map(|function| function.name.as_str()).zip(0..).collect();
        let known = asked.into_iter().filter_map(|place| {
            let row = self.functions.get(place)?;
            Some((place, FunctionRef(*by_name.get(row.function.as_str())?)))
        });
        let known: Vec<(usize, FunctionRef)> = known.collect();
        let without = Without::new((program, owners), self.cpus, model)?;
        for (place, function) in known {
            if let Some(row) = self.functions.get_mut(place) {
                row.simulated_ns = without.gain_ns(function);
            }
        }
        let key = |row: &MetricsRow| row.simulated_ns.unwrap_or(f64::NEG_INFINITY);
        self.functions.sort_by(|a, b| key(b).total_cmp(&key(a)));
        Ok(())
    }
}

/// Rows by name.
#[derive(Default)]
struct Rows {
    rows: Vec<MetricsRow>,
    places: FxHashMap<String, usize>,
}

impl Rows {
    fn of(&mut self, name: &str, location: Option<&str>) -> &mut MetricsRow {
        let next = self.rows.len();
        let place = *self.places.entry(name.to_owned()).or_insert(next);
        if place == next {
            self.rows.push(MetricsRow {
                function: name.to_owned(),
                location: location.map(str::to_owned),
                is_foreign: false,
                values_ns: [0.0; 6],
                simulated_ns: None,
            });
        }
        &mut self.rows[place]
    }
}
