//! `longpole predict`

use super::output::{to_reader, to_stdout};
use crate::exit::{Outcome, UserError};
use crate::input::Input;
use crate::plan::PredictPlan;
use crate::present::{predict, predict_json, style};
use engine::predict::{Forecast, Prediction, combine};
use engine::program::Program;

/// Reads all recordings, runs each on every CPU count, shows the combined result. The limits are those of the
/// first.
pub fn run(plan: &PredictPlan) -> Result<Outcome, UserError> {
    let mut predictions = Vec::with_capacity(plan.inputs.len());
    let mut frame = None;
    for input in &plan.inputs {
        let program = Input::open(input)?.into_program();
        predictions.push(prediction(&program, plan)?);
        frame.get_or_insert_with(|| super::frame(input, &program, &plan.cpus, &plan.model));
    }
    // There is at least one.
    let (Some(mut prediction), Some(frame)) = (combine(predictions), frame) else { return Ok(Outcome::Done) };
    if plan.json {
        prediction.findings.extend(frame.doubts);
        to_stdout(|out| predict_json::write(&prediction, &frame.limits, out))?;
    } else {
        to_reader(|out| predict::write(&prediction, &frame, &style::for_stdout(), out))?;
    }
    Ok(Outcome::Done)
}

/// The CPU counts are independent of each other: each core of this machine takes the next one.
fn prediction(program: &Program, plan: &PredictPlan) -> Result<Prediction, UserError> {
    let forecast = Forecast::new(program, &plan.cpus, &plan.model)
        .map_err(|error| UserError::runtime(error.to_string(), error.hint()))?;
    let runs = super::on_all_cores(forecast.wanted(), |cpus| forecast.at(*cpus));
    Ok(forecast.conclude(runs))
}
