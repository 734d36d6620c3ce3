//! Differences in predicted times, functions and locks, each with its noise.

use super::noise::{Noise, noise};
use super::spread::of_means;
use crate::attribution::Grouping;
use crate::cpus::Cpus;
use crate::finding::Finding;
use crate::predict::Model;
use crate::program::{Program, ProgramError};
use crate::report::{CpuResult, Detail, Report, report_by};
use std::collections::BTreeMap;

/// A number before and after: nanoseconds, or the unit of the member that has it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct BeforeAfter {
    /// Value in the first program.
    pub before: f64,
    /// Value in the second program.
    pub after: f64,
    /// A difference up to this may be chance: with one recording on each side [`fn@super::noise`] and the error of samples,
    /// else the spread between recordings of one side. `None` if it is not known.
    pub noise: Option<f64>,
}

impl BeforeAfter {
    /// After less before.
    pub fn by(&self) -> f64 {
        self.after - self.before
    }

    /// Whether the difference is within chance; `None`: chance is not known.
    pub fn is_noise(&self) -> Option<bool> {
        self.noise.map(|noise| self.by().abs() <= noise)
    }

    /// Whether there is a difference that is not known to be chance.
    pub fn is_clear(&self) -> bool {
        self.by() != 0.0 && self.is_noise() != Some(true)
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
    /// Findings about the first side, and about the second.
    pub findings: [Vec<Finding>; 2],
    /// CPUs of the machine that recorded the first program, if known.
    pub recorded_cpus: Option<u32>,
    /// Number of recordings on each side.
    pub recordings: [usize; 2],
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
    compare_all([&[before], &[after]], cpus, model)
}

/// Compares recordings of a program before a change with recordings after it. Numbers are means of a side's recordings; with
/// more than one recording on a side, chance comes from the differences between recordings of one side.
///
/// # Errors
/// One of them fails [`Program::check`].
pub fn compare_all(
    sides: [&[&Program]; 2],
    cpus: &[Cpus],
    model: &Model,
) -> Result<Comparison, ProgramError> {
    let within = match sides {
        [&[before], &[after]] => noise(before, after, cpus, model)?,
        _ => Noise::default(),
    };
    for program in sides.into_iter().flatten() {
        program.check()?;
    }
    let of = |program: &&Program| report_by(program, cpus, Detail::Functions, Grouping::Function, model);
    let reports: [Vec<Report>; 2] = sides.map(|side| side.iter().map(of).collect());
    let both = [&reports[0][..], &reports[1][..]];
    let mut functions = items(both, cpus.len(), |report| {
        let rows = |place: usize| {
            report.results[place].functions.iter().map(|row| (row.function.clone(), row.tet_ns))
        };
        (0..report.results.len()).map(|place| rows(place).collect()).collect()
    });
    for row in &mut functions {
        for (place, change) in row.changes.iter_mut().enumerate() {
            let sampled = both.map(|side| sampling_error(side, place, &row.name));
            let sampled = together(sampled);
            let spread = within.functions_ns.get(place).and_then(|noise| noise.get(&row.name).copied());
            change.noise = match change.noise {
                Some(between) => Some(between.max(sampled.unwrap_or(0.0))),
                None => together([spread, sampled]),
            };
        }
    }
    let locks = items(both, cpus.len(), |report| {
        let names = || report.locks.iter().map(|lock| lock.lock.clone());
        report
            .results
            .iter()
            .map(|result| names().zip(result.locks_held_ns.iter().copied()).collect())
            .collect()
    });
    Ok(Comparison {
        curve: curve(both, cpus, &within),
        functions,
        locks,
        findings: reports.map(findings),
        recorded_cpus: sides[0].first().and_then(|before| before.recorded_cpus),
        recordings: sides.map(<[_]>::len),
    })
}

fn curve(reports: [&[Report]; 2], cpus: &[Cpus], within: &Noise) -> Vec<CurveRow> {
    let row = |(place, cpus): (usize, &Cpus)| {
        let numbers = |of: fn(&CpuResult) -> f64| {
            reports.map(|side| -> Vec<f64> {
                side.iter().filter_map(|report| report.results.get(place)).map(of).collect()
            })
        };
        let [before, after] = numbers(|result| result.time_ns);
        let mut time = of_means([&before, &after]);
        time.noise = time.noise.or_else(|| within.time_ns.get(place).copied().flatten());
        let [before, after] = numbers(|result| result.speedup);
        let speedup = of_means([&before, &after]);
        CurveRow { cpus: *cpus, time, speedup: [speedup.before, speedup.after] }
    };
    cpus.iter().enumerate().map(row).collect()
}

/// The sampling error of a function's mean time in a side's recordings on the CPU count at `place`, nanoseconds.
fn sampling_error(side: &[Report], place: usize, function: &str) -> Option<f64> {
    let errors = side.iter().filter_map(|report| {
        let rows = &report.results.get(place)?.functions;
        rows.iter().find(|row| row.function == function)?.tet_error_ns
    });
    let squares = errors.map(|error| error * error).reduce(|sum, square| sum + square);
    squares.map(|squares| squares.sqrt() / side.len() as f64)
}

/// The findings of all recordings of a side, each once.
fn findings(side: Vec<Report>) -> Vec<Finding> {
    let mut all: Vec<Finding> = Vec::new();
    for finding in side.into_iter().flat_map(|report| report.findings) {
        if !all.iter().any(|known| known.is_like(&finding)) {
            all.push(finding);
        }
    }
    all
}

/// Combines independent sources of chance; `None` if none is known.
pub(super) fn together<const N: usize>(sources: [Option<f64>; N]) -> Option<f64> {
    let squares = sources.into_iter().flatten().map(|source| source * source);
    squares.reduce(|sum, square| sum + square).map(f64::sqrt)
}

/// An item: whether each side has it, and for each CPU count and side the numbers of its sources.
type Found = ([bool; 2], Vec<[Vec<f64>; 2]>);

/// Rows by name for items of either side's sources, the largest change first. `of` returns names and numbers of one source
/// for every CPU count; an item that a source lacks counts as 0 there.
pub(super) fn items<S>(
    sides: [&[S]; 2],
    count: usize,
    of: impl Fn(&S) -> Vec<Vec<(String, f64)>>,
) -> Vec<ItemRow> {
    let mut found: BTreeMap<String, Found> = BTreeMap::new();
    for (which, side) in sides.iter().enumerate() {
        for (source, numbers) in side.iter().map(&of).enumerate() {
            for (place, numbers) in numbers.into_iter().enumerate() {
                for (name, value) in numbers {
                    let none = || ([false; 2], vec![sides.map(|side| vec![0.0; side.len()]); count]);
                    let (there, values) = found.entry(name).or_insert_with(none);
                    there[which] = true;
                    if let Some(values) = values.get_mut(place) {
                        values[which][source] = value;
                    }
                }
            }
        }
    }
    let rows = found.into_iter().map(|(name, (there, values))| {
        let changes = values.iter().map(|[before, after]| of_means([before, after])).collect();
        ItemRow { name, there, changes }
    });
    let largest = |row: &ItemRow| row.changes.iter().map(|change| change.by().abs()).fold(0.0, f64::max);
    let mut rows: Vec<ItemRow> = rows.collect();
    rows.sort_by(|a, b| largest(b).total_cmp(&largest(a)).then_with(|| a.name.cmp(&b.name)));
    rows
}
