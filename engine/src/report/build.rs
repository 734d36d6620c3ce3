//! Builds the report of a program.

use super::{CpuResult, Cpus, Detail, Finding, FunctionRow, LockRow, Report, SegmentRow};
use crate::attribution::{Attribution, Grouping, used_by};
use crate::critical_path::{FunctionTotals, Weights};
use crate::predict::{Mean, Model, PathFacts, Timing, Visitor};
use crate::program::{ObjectId, Program};

/// The extended critical path of a program for these CPU counts, one result for each in the order given. The speed-up
/// is relative to one CPU, whether asked for or not. A program that fails [`Program::check`] gives no results and a
/// finding of kind `invalid_program`. In a deadlock the run ends at that point, with a finding of kind `deadlock`.
pub fn report(program: &Program, cpus: &[Cpus], detail: Detail) -> Report {
    report_by(program, cpus, detail, Grouping::Function, &Model::default())
}

/// A report whose rows are functions, lines, files or binaries, on this model of the machine.
pub fn report_by(
    program: &Program,
    cpus: &[Cpus],
    detail: Detail,
    grouping: Grouping,
    model: &Model,
) -> Report {
    match Builder::new(program, cpus, detail, grouping, model) {
        Ok(builder) => {
            let results = builder.groups().iter().flat_map(|group| builder.at(group)).collect();
            builder.conclude(results)
        }
        Err(report) => *report,
    }
}

/// A report in the making. [`Builder::at`] is the work; its calls are independent of each other.
#[derive(Debug)]
pub struct Builder<'a> {
    timing: Timing<'a>,
    attribution: Attribution,
    asked: Vec<Cpus>,
    detail: Detail,
    objects: Vec<ObjectId>,
    report: Report,
}

/// The part of a report that is for one CPU count.
#[derive(Debug)]
pub struct ReportPart {
    result: CpuResult,
    findings: Vec<Finding>,
}

impl ReportPart {
    /// The result for the CPU count, without the speed-up.
    pub(crate) fn result(&self) -> &CpuResult {
        &self.result
    }
}

impl<'a> Builder<'a> {
    /// Computes what all CPU counts share.
    ///
    /// # Errors
    /// The program fails [`Program::check`]: a report without results that has the error.
    pub fn new(
        program: &'a Program,
        cpus: &[Cpus],
        detail: Detail,
        grouping: Grouping,
        model: &Model,
    ) -> Result<Builder<'a>, Box<Report>> {
        let mut report = Report {
            results: Vec::new(),
            locks: Vec::new(),
            recorded: program.recorded.clone(),
            trust: program.trust,
            findings: program.findings.clone(),
            overhead: program.overhead,
            recorded_cpus: program.recorded_cpus,
            samples: None,
            used_by: used_by(program),
        };
        let timing = match Timing::new(program, model) {
            Ok(timing) => timing,
            Err(error) => {
                report.findings.push(Finding::InvalidProgram { error: error.to_string() });
                return Err(Box::new(report));
            }
        };
        let (objects, rows): (Vec<ObjectId>, Vec<LockRow>) = super::locks::rows(program).into_iter().unzip();
        report.locks = rows;
        let attribution = Attribution::of(program, grouping);
        report.samples = super::sampling_facts::facts(program, &attribution);
        Ok(Builder { timing, attribution, asked: program.counts(cpus), detail, objects, report })
    }

    /// The share of the program's CPU time that was taken out as the cost of probe hits. A hit's cost was measured in
    /// longpole itself, with warm caches, and may really be twice that: so compute time may be off by this share.
    fn probe_share(&self) -> f64 {
        let overhead = self.report.overhead.unwrap_or_default();
        if overhead.target_ns > 0 { overhead.hit_ns as f64 / overhead.target_ns as f64 } else { 0.0 }
    }

    /// Groups of CPU counts that are computed fastest together: those asked for, and one CPU.
    pub fn groups(&self) -> Vec<Vec<Cpus>> {
        let mut cpus = self.asked.clone();
        if !cpus.contains(&Cpus::ONE) {
            cpus.push(Cpus::ONE);
        }
        self.timing.groups(&cpus)
    }

    /// Computes the results for these CPU counts.
    pub fn at(&self, cpus: &[Cpus]) -> Vec<ReportPart> {
        let mut parts = self.parts();
        self.timing.weigh(cpus, &mut parts);
        parts.parts
    }

    /// A visitor that collects the results.
    pub(crate) fn parts(&self) -> Parts<'_, 'a> {
        Parts { builder: self, parts: Vec::new() }
    }

    /// The report; `parts` are the results for all [`Builder::groups`] in any order.
    pub fn conclude(mut self, parts: Vec<ReportPart>) -> Report {
        let one = parts.iter().find(|part| part.result.cpus == Cpus::ONE).map(|part| part.result.time_ns);
        let mut report = self.report;
        report.findings.extend(parts.first().into_iter().flat_map(|part| part.findings.iter().cloned()));
        report.findings.extend(report.samples.iter().flat_map(super::sampling_facts::findings));
        for cpus in self.asked.drain(..) {
            let found = parts.iter().find(|part| part.result.cpus == cpus);
            report.results.extend(found.map(|part| CpuResult {
                speedup: match one {
                    Some(one) if part.result.time_ns > 0.0 => one / part.result.time_ns,
                    // A program without computing takes no time on any number of processors.
                    _ => 1.0,
                },
                ..part.result.clone()
            }));
        }
        sort_locks(&mut report);
        report
    }
}

/// A visitor that makes parts of a report.
pub(crate) struct Parts<'b, 'a> {
    builder: &'b Builder<'a>,
    pub(crate) parts: Vec<ReportPart>,
}

impl Visitor for Parts<'_, '_> {
    fn visit<const N: usize>(&mut self, weights: &Weights<'_, N>, paths: &[PathFacts]) {
        let builder = self.builder;
        let program = builder.timing.program();
        let totals = weights.totals(&builder.attribution);
        for path in paths {
            let held = builder.objects.iter();
            let held =
                held.map(|object| path.mean(|place| totals.held(weights, *object, place).as_ns_f64()).ns);
            let segments = match builder.detail {
                Detail::Functions => Vec::new(),
                Detail::Segments => segments(program, weights, path),
            };
            let result = CpuResult {
                cpus: path.cpus,
                time_ns: path.time_ns,
                may_be_ns: builder.timing.may_be_ns(path.cpus, path.time_ns),
                speedup: 1.0,
                locks_held_ns: held.collect(),
                waits: super::delays::rows(program, path),
                functions: rows(&builder.attribution, weights, &totals, path, builder.probe_share()),
                segments,
            };
            self.parts.push(ReportPart { result, findings: path.findings.clone() });
        }
    }
}

/// Sorts locks by their largest share at any CPU count; locks with equal shares by their time of waiting.
fn sort_locks(report: &mut Report) {
    let share = |lock: usize| {
        let shares = report.results.iter().filter(|result| result.time_ns > 0.0);
        shares.map(|result| result.locks_held_ns[lock] / result.time_ns).fold(f64::NEG_INFINITY, f64::max)
    };
    let mut order: Vec<(f64, f64, usize)> =
        (0..report.locks.len()).map(|i| (share(i), report.locks[i].wait_ns.unwrap_or(0.0), i)).collect();
    let name = |i: usize| &report.locks[i].lock;
    order
        .sort_by(|a, b| b.0.total_cmp(&a.0).then(b.1.total_cmp(&a.1)).then_with(|| name(a.2).cmp(name(b.2))));
    report.locks = order.iter().map(|(_, _, i)| report.locks[*i].clone()).collect();
    for result in &mut report.results {
        result.locks_held_ns = order.iter().map(|(_, _, i)| result.locks_held_ns[*i]).collect();
    }
}

fn rows<const N: usize>(
    attribution: &Attribution,
    weights: &Weights<'_, N>,
    totals: &FunctionTotals<N>,
    path: &PathFacts,
    probe_share: f64,
) -> Vec<FunctionRow> {
    let names = &attribution.keys.names;
    let first = path.places.start;
    let numbers = (0..names.len()).filter_map(|index| {
        let calls = totals.calls(index, first);
        let tet = path.mean(|place| totals.tet(weights, index, place).as_ns_f64());
        let tetid = path.mean(|place| totals.tetid(weights, index, place).as_ns_f64());
        (calls != 0 || tet.ns != 0.0 || tetid.ns != 0.0).then_some((index, calls, tet, tetid))
    });
    let mut numbers: Vec<_> = numbers.collect();
    numbers.sort_by(|a, b| {
        let by_name = || names[a.0].name.cmp(&names[b.0].name);
        b.3.ns.total_cmp(&a.3.ns).then_with(by_name)
    });
    // Hits that cost more than assumed leave the excess in callers and callees. A function is off by the excess that it
    // contains, and by its share of the excess in the total.
    let all_calls: u64 = numbers.iter().fold(0, |sum, (_, calls, ..)| sum.saturating_add(*calls));
    let probes_ns = |calls: u64, ns: f64| {
        let own = calls as f64 / all_calls.max(1) as f64 * (path.time_ns - ns).max(0.0);
        Some(probe_share * own.max(ns.abs())).filter(|error| *error >= PROBES_WORTH_TELLING * path.time_ns)
    };
    // Errors by samples, by the scheduler's chance and by probes are independent of each other.
    let with = |samples: Option<f64>, mean: &Mean, calls: u64| {
        let probes = probes_ns(calls, mean.ns);
        let all = samples.unwrap_or(0.0).hypot(mean.error_ns).hypot(probes.unwrap_or(0.0));
        let is_worth_it = all >= WORTH_TELLING * path.time_ns && all > 0.0;
        (samples.is_some() || is_worth_it).then_some(all)
    };
    let rows = numbers.into_iter().map(|(index, calls, tet, tetid)| {
        let row = &names[index];
        let (tet_error_ns, tetid_error_ns, samples) = totals.error_ns(weights, index, first);
        FunctionRow {
            function: row.name.clone(),
            location: row.location.clone(),
            calls,
            uncounted: row.uncounted,
            calls_partial: row.partly_counted && !row.uncounted,
            tet_ns: tet.ns,
            tetid_ns: tetid.ns,
            exact: tet_error_ns.is_none() && tetid_error_ns.is_none(),
            tet_error_ns: with(tet_error_ns, &tet, calls),
            tetid_error_ns: with(tetid_error_ns, &tetid, calls),
            samples,
            probes_removed: row.probes_removed,
            partly_inlined: row.partly_inlined,
        }
    });
    rows.collect()
}

/// Errors below this share of the time are not shown.
const WORTH_TELLING: f64 = 0.0005;
/// The error by probe hits counts from this share of the time on: a number without ± is right within half a point.
const PROBES_WORTH_TELLING: f64 = 0.0025;

fn segments<const N: usize>(
    program: &Program,
    weights: &Weights<'_, N>,
    path: &PathFacts,
) -> Vec<SegmentRow> {
    let rows = weights.segments().map(|segment| SegmentRow {
        thread: program.threads[segment.thread.0 as usize].name.clone(),
        operation: segment.operation,
        function: segment.function.map(|function| program.functions[function.0 as usize].name.clone()),
        start_ns: segment.start.as_ns_f64(),
        end_ns: segment.end.as_ns_f64(),
        weight: path.mean(|place| weights.of_segment(&segment, place)).ns,
    });
    rows.collect()
}
