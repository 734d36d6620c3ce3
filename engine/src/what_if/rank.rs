//! What every function would bring: what coz estimates with many runs of the program, from one recording.

use super::edit::{Edit, edited};
use super::trial::trial;
use crate::attribution::Grouping;
use crate::cpus::Cpus;
use crate::predict::Model;
use crate::program::{FunctionRef, Program, ProgramError};
use crate::report::{Detail, report_by};
use rustc_hash::FxHashMap;

/// How much is taken off each function, as what is left of it: 10 %, 20 %, 50 % and all of it.
pub const FACTORS: [f64; 4] = [0.9, 0.8, 0.5, 0.0];

/// Functions by what they bring, on one CPU count.
#[derive(Clone, Debug, PartialEq)]
pub struct Ranking {
    /// The CPU count.
    pub cpus: Cpus,
    /// Predicted time as it is, nanoseconds.
    pub time_ns: f64,
    /// The largest gain first.
    pub rows: Vec<RankRow>,
}

/// What a function brings.
#[derive(Clone, Debug, PartialEq)]
pub struct RankRow {
    /// Unique name.
    pub function: String,
    /// `file:line`, if known.
    pub location: Option<String>,
    /// Gain from taking 10 %, 20 %, 50 % and all off its own computing, nanoseconds; below 0 it gets slower.
    pub gains_ns: [f64; 4],
}

/// Ranks the `most` functions with the largest own share of the extended critical path on any of these CPU counts. 1 + 4 ·
/// `most` runs on each of them.
///
/// # Errors
/// The program fails [`Program::check`].
pub fn rank(
    program: &Program,
    cpus: &[Cpus],
    model: &Model,
    most: usize,
) -> Result<Vec<Ranking>, ProgramError> {
    let before = trial(program, cpus, model)?.results;
    let mut rankings: Vec<Ranking> = before
        .iter()
        .map(|result| Ranking { cpus: result.cpus, time_ns: result.time_ns, rows: Vec::new() })
        .collect();
    for function in candidates(program, cpus, most, model) {
        let Some(known) = program.functions.get(function.0 as usize) else { continue };
        let mut gains = vec![[0.0; 4]; rankings.len()];
        for (place, factor) in FACTORS.into_iter().enumerate() {
            let Ok(scaled) = edited(program, &[Edit::Scale(vec![function], factor)]) else { continue };
            let after = trial(&scaled, cpus, model)?.results;
            for ((gains, before), after) in gains.iter_mut().zip(&before).zip(&after) {
                gains[place] = before.time_ns - after.time_ns;
            }
        }
        for (ranking, gains_ns) in rankings.iter_mut().zip(gains) {
            let (function, location) = (known.name.clone(), known.location.clone());
            ranking.rows.push(RankRow { function, location, gains_ns });
        }
    }
    for ranking in &mut rankings {
        ranking.rows.sort_by(|a, b| {
            let key = |row: &RankRow| (row.gains_ns[3], row.gains_ns[2], row.gains_ns[0]);
            let (a_key, b_key) = (key(a), key(b));
            let by_gain = b_key
                .0
                .total_cmp(&a_key.0)
                .then(b_key.1.total_cmp(&a_key.1))
                .then(b_key.2.total_cmp(&a_key.2));
            by_gain.then_with(|| a.function.cmp(&b.function))
        });
    }
    Ok(rankings)
}

/// Functions with any own time on the extended critical path, the largest share on any CPU count first.
fn candidates(program: &Program, cpus: &[Cpus], most: usize, model: &Model) -> Vec<FunctionRef> {
    let report = report_by(program, cpus, Detail::Functions, Grouping::Function, model);
    let mut shares: FxHashMap<&str, f64> = FxHashMap::default();
    for result in report.results.iter().filter(|result| result.time_ns > 0.0) {
        for row in &result.functions {
            let share = shares.entry(&row.function).or_insert(f64::NEG_INFINITY);
            *share = share.max(row.tet_ns / result.time_ns);
        }
    }
    let mut found: Vec<(f64, u32)> = (0..)
        .zip(&program.functions)
        .filter_map(|(number, function)| Some((*shares.get(function.name.as_str())?, number)))
        .filter(|(share, _)| *share > 0.0)
        .collect();
    found.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
    found.truncate(most);
    found.into_iter().map(|(_, number)| FunctionRef(number)).collect()
}
