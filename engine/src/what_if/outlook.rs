//! A program's times on several CPU counts, and the leading function on each.

use crate::cpus::Cpus;
use crate::finding::Finding;
use crate::predict::{CpuPrediction, Forecast, Model};
use crate::program::{Program, ProgramError};

/// The results of running a program.
pub(super) struct Outlook {
    /// Predictions in the order of the CPU counts.
    pub(super) results: Vec<CpuPrediction>,
    pub(super) findings: Vec<Finding>,
}

/// Runs a program on these CPU counts only.
///
/// # Errors
/// The program fails [`Program::check`].
pub(super) fn outlook(program: &Program, cpus: &[Cpus], model: &Model) -> Result<Outlook, ProgramError> {
    // One run for each CPU count suffices, since only times are reported for a change.
    let model = Model { runs: 1, ..model.clone() };
    let forecast = Forecast::new(program, cpus, &model)?.without_band();
    let runs = cpus.iter().map(|cpus| forecast.at(*cpus)).collect();
    let prediction = forecast.conclude(runs);
    Ok(Outlook { results: prediction.results, findings: prediction.findings })
}
