//! Differences in predicted times, functions and locks, each with its noise.

use super::noise::noise;
use crate::attribution::Grouping;
use crate::cpus::Cpus;
use crate::finding::Finding;
use crate::predict::Model;
use crate::program::{Program, ProgramError};
use crate::report::{Detail, Report, report_by};
use std::collections::BTreeMap;

/// A number before and after: nanoseconds, or the unit of the member that has it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct BeforeAfter {
    /// Value in the first program.
    pub before: f64,
    /// Value in the second program.
    pub after: f64,
    /// A difference up to this may be chance: [`super::noise`], and the error of samples. `None` if it is not known.
    pub noise: Option<f64>,
}

impl BeforeAfter {
    /// After less before.
    pub fn by(&self) -> f64 {
        self.after - self.before
    }

    /// Whether the difference exceeds chance.
    pub fn is_clear(&self) -> bool {
        self.by() != 0.0 && self.noise.is_none_or(|noise| self.by().abs() > noise)
    }
}

/// Two programs side by side.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Comparison {
    /// Predicted time on each CPU count, in the order asked.
    pub curve: Vec<CurveRow>,
    /// Functions of either program, sorted by the largest change of their self time on the extended critical path on
    /// any CPU count.
    pub functions: Vec<ItemRow>,
    /// Locks of either program, sorted by the largest change of the computing on the extended critical path while they
    /// are held.
    pub locks: Vec<ItemRow>,
    /// Findings about the first program, and about the second.
    pub findings: [Vec<Finding>; 2],
    /// CPUs of the machine that recorded the first program, if known.
    pub recorded_cpus: Option<u32>,
}

/// The predicted times of both programs on one CPU count.
#[derive(Clone, Debug, PartialEq)]
pub struct CurveRow {
    /// The CPU count.
    pub cpus: Cpus,
    /// Predicted time.
    pub time: BeforeAfter,
    /// Speed-up against one CPU, before and after.
    pub speedup: [f64; 2],
}

/// A function or a lock on every CPU count.
#[derive(Clone, Debug, PartialEq)]
pub struct ItemRow {
    /// Unique name.
    pub name: String,
    /// Whether the first program has this function or lock, and whether the second one has it.
    pub there: [bool; 2],
    /// The change on each CPU count, in order.
    pub changes: Vec<BeforeAfter>,
}

/// Compares two programs.
///
/// # Errors
/// One of them fails [`Program::check`].
pub fn compare(
    before: &Program,
    after: &Program,
    cpus: &[Cpus],
    model: &Model,
) -> Result<Comparison, ProgramError> {
    let of = |program| report_by(program, cpus, Detail::Functions, Grouping::Function, model);
    let reports = [of(before), of(after)];
    let noise = noise(before, after, cpus, model)?;
    let curve = (0..cpus.len()).filter_map(|place| {
        let (a, b) = (reports[0].results.get(place)?, reports[1].results.get(place)?);
        let noise = noise.time_ns.get(place).copied();
        let time = BeforeAfter { before: a.time_ns, after: b.time_ns, noise };
        Some(CurveRow { cpus: a.cpus, time, speedup: [a.speedup, b.speedup] })
    });
    let mut functions = items(reports.each_ref(), cpus.len(), |report| {
        let rows = |place: usize| {
            report.results[place].functions.iter().map(|row| (row.function.clone(), row.tet_ns))
        };
        (0..report.results.len()).map(|place| rows(place).collect()).collect()
    });
    for row in &mut functions {
        for place in 0..row.changes.len() {
            let spread = noise.functions_ns.get(place).and_then(|noise| noise.get(&row.name).copied());
            let sampled = |report: &Report| {
                let rows = &report.results.get(place)?.functions;
                rows.iter().find(|of| of.function == row.name)?.tet_error_ns
            };
            let [a, b] = [sampled(&reports[0]), sampled(&reports[1])];
            row.changes[place].noise = together([spread, a, b]);
        }
    }
    let locks = items(reports.each_ref(), cpus.len(), |report| {
        let names = || report.locks.iter().map(|lock| lock.lock.clone());
        report
            .results
            .iter()
            .map(|result| names().zip(result.locks_held_ns.iter().copied()).collect())
            .collect()
    });
    let curve = curve.collect();
    let [first, second] = reports;
    Ok(Comparison {
        curve,
        functions,
        locks,
        findings: [first.findings, second.findings],
        recorded_cpus: before.recorded_cpus,
    })
}

/// Combines independent sources of chance; `None` if none is known.
pub(super) fn together<const N: usize>(sources: [Option<f64>; N]) -> Option<f64> {
    let squares = sources.into_iter().flatten().map(|source| source * source);
    squares.reduce(|sum, square| sum + square).map(f64::sqrt)
}

/// Rows by name for items of either source, the largest change first. `of` returns names and numbers for every CPU count.
pub(super) fn items<S>(
    sources: [S; 2],
    count: usize,
    of: impl Fn(S) -> Vec<Vec<(String, f64)>>,
) -> Vec<ItemRow> {
    let mut rows: BTreeMap<String, ItemRow> = BTreeMap::new();
    for (which, source) in sources.into_iter().enumerate() {
        for (place, numbers) in of(source).into_iter().enumerate() {
            for (name, value) in numbers {
                let row = rows.entry(name.clone()).or_insert_with(|| ItemRow {
                    name,
                    there: [false; 2],
                    changes: vec![BeforeAfter::default(); count],
                });
                row.there[which] = true;
                if let Some(change) = row.changes.get_mut(place) {
                    *(if which == 0 { &mut change.before } else { &mut change.after }) = value;
                }
            }
        }
    }
    let largest = |row: &ItemRow| row.changes.iter().map(|change| change.by().abs()).fold(0.0, f64::max);
    let mut rows: Vec<ItemRow> = rows.into_values().collect();
    rows.sort_by(|a, b| largest(b).total_cmp(&largest(a)).then_with(|| a.name.cmp(&b.name)));
    rows
}
