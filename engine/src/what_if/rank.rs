//! The gain of making each function faster: what coz estimates with many runs of the program, from one recording.

use crate::attribution::{Grouping, Owners};
use crate::cpus::Cpus;
use crate::experiment::{Edit, edited};
use crate::predict::{Model, Timing};
use crate::program::{FunctionRef, Program, ProgramError};
use crate::report::{Detail, report_by};

/// The remaining parts of each function: 10 %, 20 %, 50 % and all taken off.
pub const FACTORS: [f64; 4] = [0.9, 0.8, 0.5, 0.0];

/// Functions ordered by their gains, on one CPU count.
#[derive(Clone, Debug, PartialEq)]
pub struct Ranking {
    /// The CPU count.
    pub cpus: Cpus,
    /// Predicted time of the unchanged program, nanoseconds.
    pub time_ns: f64,
    /// The largest gain first.
    pub rows: Vec<RankRow>,
}

/// The gains of one function.
#[derive(Clone, Debug, PartialEq)]
pub struct RankRow {
    /// Unique name.
    pub function: String,
    /// Where the function begins, as `file:line`, if known.
    pub location: Option<String>,
    /// Gain from taking 10 %, 20 %, 50 % and all off the function's self time, nanoseconds; below 0 the program gets
    /// slower.
    pub gains_ns: [f64; 4],
}

/// Ranks the `most` functions with the largest self share of the extended critical path on any of these CPU counts.
/// This takes 1 + 4 · `most` runs on each CPU count.
///
/// # Errors
/// The program fails [`Program::check`].
pub fn rank(
    program: &Program,
    cpus: &[Cpus],
    model: &Model,
    most: usize,
) -> Result<Vec<Ranking>, ProgramError> {
    let owners = Owners::themselves(program);
    let ranker = Ranker::new(program, (program, &owners), cpus, model, most)?;
    let times = ranker.changes().into_iter().map(|change| ranker.times_ns(change)).collect();
    Ok(ranker.conclude(times))
}

/// A ranking in the making. [`Ranker::times_ns`] for each of [`Ranker::changes`] is the work; these calls are independent of
/// each other.
#[derive(Debug)]
pub struct Ranker<'a> {
    program: &'a Program,
    owners: &'a Owners,
    cpus: Vec<Cpus>,
    model: Model,
    functions: Vec<FunctionRef>,
}

/// A function, and the share of its time that remains; `None` is the unchanged program.
pub type RankChange = Option<(FunctionRef, f64)>;

impl<'a> Ranker<'a> {
    /// Chooses the functions by a report of `shown` on each of these CPU counts. Changes are made in `program`, which
    /// is another view of the same program; `owners` has the functions that count for each function.
    ///
    /// # Errors
    /// The program fails [`Program::check`].
    pub fn new(
        shown: &Program,
        (program, owners): (&'a Program, &'a Owners),
        cpus: &[Cpus],
        model: &Model,
        most: usize,
    ) -> Result<Ranker<'a>, ProgramError> {
        program.check()?;
        let functions = candidates(shown, cpus, most, model);
        // One run for each CPU count suffices, since only times are reported for a change.
        let model = Model { runs: 1, ..model.clone() };
        Ok(Ranker { program, owners, cpus: cpus.to_vec(), model, functions })
    }

    /// The runs: the unchanged program, then each function with each of [`FACTORS`].
    pub fn changes(&self) -> Vec<RankChange> {
        let each = |function: &FunctionRef| FACTORS.map(|factor| Some((*function, factor)));
        std::iter::once(None).chain(self.functions.iter().flat_map(each)).collect()
    }

    /// The predicted times with a change, one for each CPU count, nanoseconds; empty if the change cannot be made.
    pub fn times_ns(&self, change: RankChange) -> Vec<f64> {
        let times = |program: &Program| {
            let timing = Timing::new(program, &self.model).ok()?;
            Some(self.cpus.iter().map(|cpus| timing.time_ns(*cpus)).collect())
        };
        let times = match change {
            None => times(self.program),
            Some((function, factor)) => {
                let changed = edited(self.program, &[Edit::Scale(self.owners.owned_by(function), factor)]);
                changed.ok().and_then(|program| times(&program))
            }
        };
        times.unwrap_or_default()
    }

    /// The rankings; `times` are for [`Ranker::changes`] in the same order.
    pub fn conclude(self, times: Vec<Vec<f64>>) -> Vec<Ranking> {
        let Some((before, after)) = times.split_first() else { return Vec::new() };
        let rankings = self.cpus.iter().zip(before).enumerate().map(|(place, (cpus, time_ns))| {
            let rows =
                self.functions.iter().zip(after.chunks(FACTORS.len())).filter_map(|(function, after)| {
                    let known = self.program.functions.get(function.0 as usize)?;
                    let mut gains_ns = [0.0; FACTORS.len()];
                    for (gain, after) in gains_ns.iter_mut().zip(after) {
                        *gain = after.get(place).map_or(0.0, |after| time_ns - after);
                    }
                    Some(RankRow { function: known.name.clone(), location: known.location.clone(), gains_ns })
                });
            let mut rows: Vec<RankRow> = rows.collect();
            rows.sort_by(|a, b| {
                let key = |row: &RankRow| (row.gains_ns[3], row.gains_ns[2], row.gains_ns[0]);
                let (a_key, b_key) = (key(a), key(b));
                let by_gain = b_key
                    .0
                    .total_cmp(&a_key.0)
                    .then(b_key.1.total_cmp(&a_key.1))
                    .then(b_key.2.total_cmp(&a_key.2));
                by_gain.then_with(|| a.function.cmp(&b.function))
            });
            Ranking { cpus: *cpus, time_ns: *time_ns, rows }
        });
        rankings.collect()
    }
}

/// Functions with any self time on the extended critical path, the largest share on any CPU count first.
fn candidates(program: &Program, cpus: &[Cpus], most: usize, model: &Model) -> Vec<FunctionRef> {
    let report = report_by(program, cpus, Detail::Functions, Grouping::Function, model);
    let shares = report.largest_shares(|row| row.tet_ns);
    let mut found: Vec<(f64, u32)> = (0..)
        .zip(&program.functions)
        .filter_map(|(number, function)| Some((*shares.get(function.name.as_str())?, number)))
        .filter(|(share, _)| *share > 0.0)
        .collect();
    found.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
    found.truncate(most);
    found.into_iter().map(|(_, number)| FunctionRef(number)).collect()
}
