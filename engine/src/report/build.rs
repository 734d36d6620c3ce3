//! From a program to its report.

use super::{CpuResult, Cpus, Detail, Finding, FunctionRow, LockRow, Report, SegmentRow};
use crate::attribution::{Attribution, Grouping};
use crate::critical_path::{CriticalPath, FunctionTotals, Weights};
use crate::program::{ObjectId, Program};

/// The extended critical path of a program for these CPU counts, one result for each in the order given. The speed-up
/// is relative to one CPU, whether that was asked for or not. A program that fails [`Program::check`] gives no results and
/// a finding of kind `invalid_program`; a deadlock gives the result up to it and a finding of kind `deadlock`.
pub fn report(program: &Program, cpus: &[Cpus], detail: Detail) -> Report {
    report_by(program, cpus, detail, Grouping::Function)
}

/// The same with rows that are lines, files or binaries instead of functions.
pub fn report_by(program: &Program, cpus: &[Cpus], detail: Detail, grouping: Grouping) -> Report {
    let mut report = Report {
        results: Vec::new(),
        locks: Vec::new(),
        recorded: program.recorded.clone(),
        trust: program.trust,
        findings: program.findings.clone(),
        overhead: program.overhead,
        recorded_cpus: program.recorded_cpus,
        samples: None,
    };
    let path = match CriticalPath::of(program) {
        Ok(path) => path,
        Err(error) => {
            report.findings.push(Finding { kind: "invalid_program".to_owned(), text: error.to_string() });
            return report;
        }
    };
    report.findings.extend(path.findings().iter().cloned());
    let (objects, rows): (Vec<ObjectId>, Vec<LockRow>) = super::locks::rows(program).into_iter().unzip();
    report.locks = rows;
    let attribution = Attribution::of(program, grouping);
    report.samples = super::samples::facts(program, &attribution);
    report.findings.extend(report.samples.iter().flat_map(super::samples::findings));
    for weights in path.weights(cpus) {
        let totals = weights.totals(&attribution);
        for (place, cpus) in weights.cpus().iter().enumerate() {
            let mut result = result(&path, &weights, &attribution, &totals, place, *cpus, detail);
            let held = objects.iter().map(|object| totals.held(&weights, *object, place).as_ns_f64());
            result.locks_held_ns = held.collect();
            report.results.push(result);
        }
    }
    sort_locks(&mut report);
    report
}

/// The largest share at any CPU count first, then the longest wait.
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

fn result(
    path: &CriticalPath<'_>,
    weights: &Weights<'_>,
    attribution: &Attribution,
    totals: &FunctionTotals,
    place: usize,
    cpus: Cpus,
    detail: Detail,
) -> CpuResult {
    let time_ns = path.time(cpus).as_ns_f64();
    let one_ns = path.time(Cpus::ONE).as_ns_f64();
    let segments = match detail {
        Detail::Functions => Vec::new(),
        Detail::Segments => segments(path, weights, place),
    };
    CpuResult {
        cpus,
        time_ns,
        // Nothing takes no time on any number of processors.
        speedup: if time_ns > 0.0 { one_ns / time_ns } else { 1.0 },
        locks_held_ns: Vec::new(),
        functions: rows(attribution, weights, totals, place),
        segments,
    }
}

fn rows(
    attribution: &Attribution,
    weights: &Weights<'_>,
    totals: &FunctionTotals,
    place: usize,
) -> Vec<FunctionRow> {
    let names = &attribution.keys.names;
    let numbers = (0..names.len()).filter_map(|index| {
        let calls = totals.calls(index, place);
        let tet = totals.tet(weights, index, place);
        let tetid = totals.tetid(weights, index, place);
        (calls != 0 || tet.value != 0 || tetid.value != 0).then_some((index, calls, tet, tetid))
    });
    let mut numbers: Vec<_> = numbers.collect();
    // By the exact numbers, so that the order does not hang on rounding.
    numbers.sort_by(|a, b| {
        let by_name = || names[a.0].name.cmp(&names[b.0].name);
        b.3.value.cmp(&a.3.value).then_with(by_name)
    });
    let rows = numbers.into_iter().map(|(index, calls, tet, tetid)| {
        let row = &names[index];
        let (tet_error_ns, tetid_error_ns, samples) = totals.error_ns(weights, index, place);
        FunctionRow {
            function: row.name.clone(),
            location: row.location.clone(),
            calls,
            uncounted: row.uncounted,
            tet_ns: tet.as_ns_f64(),
            tetid_ns: tetid.as_ns_f64(),
            exact: tet_error_ns.is_none() && tetid_error_ns.is_none(),
            tet_error_ns,
            tetid_error_ns,
            samples,
            folded: row.folded,
            partly_inlined: row.partly_inlined,
        }
    });
    rows.collect()
}

fn segments(path: &CriticalPath<'_>, weights: &Weights<'_>, place: usize) -> Vec<SegmentRow> {
    let program = path.program();
    let rows = path.segments().map(|segment| SegmentRow {
        thread: program.threads[segment.thread.0 as usize].name.clone(),
        operation: segment.operation,
        function: segment.function.map(|function| program.functions[function.0 as usize].name.clone()),
        start_ns: segment.start.as_ns_f64(),
        end_ns: segment.end.as_ns_f64(),
        weight: weights.weight(segment.point, place),
    });
    rows.collect()
}
