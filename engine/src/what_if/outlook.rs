//! A program's times on several CPU counts, and the function that comes first there.

use crate::cpus::Cpus;
use crate::finding::Finding;
use crate::predict::{CpuPrediction, Forecast, Model};
use crate::program::{Program, ProgramError};

/// What came of running a program.
pub(super) struct Outlook {
    /// In the order of the CPU counts.
    pub(super) results: Vec<CpuPrediction>,
    pub(super) findings: Vec<Finding>,
}

/// Runs a program on these CPU counts and no others.
///
/// # Errors
/// The program fails [`Program::check`].
pub(super) fn outlook(program: &Program, cpus: &[Cpus], model: &Model) -> Result<Outlook, ProgramError> {
    // Only times are reported for a change, and one run gives them.
    let model = Model { runs: 1, ..model.clone() };
    let forecast = Forecast::new(program, cpus, &model)?.without_band();
    let runs = cpus.iter().map(|cpus| forecast.at(*cpus)).collect();
    let prediction = forecast.conclude(runs);
    Ok(Outlook { results: prediction.results, findings: prediction.findings })
}
