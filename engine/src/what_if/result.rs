//! Predicted times before and after changes.

use super::outlook::outlook;
use crate::attribution::Grouping;
use crate::cpus::Cpus;
use crate::experiment::{Edit, EditError, Trial, Trials, with_open};
use crate::finding::{Finding, Trust};
use crate::json::{maybe_number, name_only, number};
use crate::predict::{Assumptions, CpuPrediction, Model, Scheduler};
use crate::program::{Program, ProgramError};
use crate::report::{Detail, report_by};
use serde::Serialize;

/// A program before and after changes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct WhatIf {
    /// One result for each CPU count asked for, in the order asked.
    pub results: Vec<WhatIfRow>,
    /// How far the results can be trusted, given the recording.
    pub trust: Trust,
    /// Findings about the unchanged program.
    pub findings: Vec<Finding>,
    /// Further findings about the changed program.
    pub findings_after: Vec<Finding>,
    /// CPUs of the recorded machine, if known.
    pub recorded_cpus: Option<u32>,
}

/// The predicted times on one CPU count.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct WhatIfRow {
    /// The CPU count.
    pub cpus: Cpus,
    /// Predicted time of the unchanged program, nanoseconds.
    #[serde(serialize_with = "number")]
    pub before_ns: f64,
    /// Predicted time with the changes, nanoseconds.
    #[serde(serialize_with = "number")]
    pub after_ns: f64,
    /// The gain by the extended critical path: Σ (1 − factor) · self time on it, nanoseconds; `None` if a change does not
    /// scale functions.
    #[serde(serialize_with = "maybe_number")]
    pub promised_ns: Option<f64>,
    /// The range of the gain, shares of `before_ns`; `None` if not known.
    pub gain_between: Option<(f64, f64)>,
    /// The function with the largest share of the extended critical path in the unchanged program, with that share.
    #[serde(serialize_with = "name_only")]
    pub first_before: Option<(String, f64)>,
    /// The function with the largest share of the extended critical path in the changed program, with that share.
    #[serde(serialize_with = "name_only")]
    pub first_after: Option<(String, f64)>,
}

/// Why a what-if question has no answer.
#[derive(Clone, Debug, PartialEq)]
pub enum WhatIfError {
    /// A change cannot be made.
    Edit(EditError),
    /// The program, or the changed program, cannot be run.
    Program(ProgramError),
}

/// Runs the unchanged and the changed program on every CPU count.
///
/// # Errors
/// A change cannot be made, or one of the two programs fails [`Program::check`].
pub fn what_if(trials: &Trials<'_>, edits: &[Edit], cpus: &[Cpus]) -> Result<WhatIf, WhatIfError> {
    let (program, model) = (trials.program(), trials.model());
    let before = outlook(program, cpus, model).map_err(WhatIfError::Program)?;
    let promised = promised(program, edits, cpus, model);
    let mut all = WhatIf {
        results: Vec::new(),
        trust: program.trust,
        findings: before.findings,
        findings_after: Vec::new(),
        recorded_cpus: program.recorded_cpus,
    };
    // Work divided among more threads than CPUs depends on the CPU count.
    let differs = edits.iter().any(|edit| edit.on(Cpus::ONE) != *edit);
    let pairs: Vec<_> = before.results.into_iter().zip(promised).collect();
    for together in pairs.chunks(if differs { 1 } else { pairs.len().max(1) }) {
        let cpus = |(before, _): &(CpuPrediction, _)| before.cpus;
        let Some(first) = together.first().map(cpus) else { continue };
        let trial = trials
            .with(edits.iter().map(|edit| edit.on(if differs { first } else { Cpus::Infinite })).collect());
        let changed = trial.changed().map_err(WhatIfError::Edit)?;
        let on: Vec<Cpus> = together.iter().map(|pair| trial.on(cpus(pair))).collect();
        let after = outlook(&changed.program, &on, &changed.model).map_err(WhatIfError::Program)?;
        all.findings_after.extend(after.findings);
        let rows = together.iter().zip(after.results);
        all.results.extend(rows.map(|((before, promised), after)| row(&trial, before, after, *promised)));
    }
    let known = &all.findings;
    all.findings_after.retain(|finding| !known.contains(finding));
    all.findings_after.dedup();
    Ok(all)
}

fn row(
    trial: &Trial<'_>,
    before: &CpuPrediction,
    after: CpuPrediction,
    promised: Option<Promised>,
) -> WhatIfRow {
    let gain = if before.time_ns > 0.0 { 1.0 - after.time_ns / before.time_ns } else { 0.0 };
    let recorded = promised.map_or(0.0, |promised| gain.abs() * promised.relative_error());
    let is_ideal = Assumptions::of(trial.program(), trial.model()).scheduler == Scheduler::Ideal;
    // Ideal sharing leaves nothing open, so there is no range.
    let between = || with_open(trial.gains(before.cpus, gain), gain, recorded);
    WhatIfRow {
        cpus: before.cpus,
        before_ns: before.time_ns,
        after_ns: after.time_ns,
        promised_ns: promised.map(|promised| promised.ns),
        gain_between: (!is_ideal).then(between),
        first_before: before.leader.clone(),
        first_after: after.leader,
    }
}

/// The gain of changes by weights.
#[derive(Clone, Copy)]
struct Promised {
    ns: f64,
    /// Half-width of the gain's 95 % interval, by the errors of the recording.
    error_ns: f64,
}

impl Promised {
    fn relative_error(self) -> f64 {
        if self.ns.abs() > 0.0 { self.error_ns / self.ns.abs() } else { 0.0 }
    }
}

/// For each CPU count, the gain by weights of the extended critical path; `None` if a change does not scale functions.
fn promised(program: &Program, edits: &[Edit], cpus: &[Cpus], model: &Model) -> Vec<Option<Promised>> {
    let mut factors = vec![1.0; program.functions.len()];
    for edit in edits {
        let Edit::Scale(functions, factor) = edit else { return vec![None; cpus.len()] };
        for function in functions {
            if let Some(all) = factors.get_mut(function.0 as usize) {
                *all *= factor;
            }
        }
    }
    let by_name: rustc_hash::FxHashMap<&str, f64> =
        program.functions.iter().map(|function| function.name.as_str()).zip(factors).collect();
    let report = report_by(program, cpus, Detail::Functions, Grouping::Function, model);
    let results = report.results.iter().map(|result| {
        let rows = result.functions.iter();
        let factor = |name: &str| by_name.get(name).copied().unwrap_or(1.0);
        let parts = rows.map(|row| {
            let part = 1.0 - factor(&row.function);
            (part * row.tet_ns, part * row.tet_error_ns.unwrap_or(0.0))
        });
        let (ns, squares) =
            parts.fold((0.0, 0.0), |(ns, squares), (part, error)| (ns + part, squares + error * error));
        Some(Promised { ns, error_ns: f64::sqrt(squares) })
    });
    results.collect()
}
