//! `longpole predict`

use super::output::to_stdout;
use crate::cli::input::Input;
use crate::cli::plan::PredictPlan;
use crate::cli::{Outcome, UserError};
use crate::present::{predict, predict_json, style};
use engine::predict::{Forecast, Prediction, Run, combine};
use engine::program::Program;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Reads all recordings, runs each on every CPU count, shows what they say together.
pub fn run(plan: &PredictPlan) -> Result<Outcome, UserError> {
    let mut predictions = Vec::with_capacity(plan.inputs.len());
    for input in &plan.inputs {
        let program = Input::open(input)?.into_program();
        predictions.push(on_all_cores(&program, plan)?);
    }
    // There is at least one.
    let Some(prediction) = combine(predictions) else { return Ok(Outcome::Done) };
    if plan.json {
        to_stdout(|out| predict_json::write(&prediction, out))?;
    } else {
        to_stdout(|out| predict::write(&prediction, &style::for_stdout(), out))?;
    }
    Ok(Outcome::Done)
}

/// The CPU counts are independent of each other: each core of this machine takes the next one.
fn on_all_cores(program: &Program, plan: &PredictPlan) -> Result<Prediction, UserError> {
    let forecast = Forecast::new(program, &plan.cpus, &plan.model)
        .map_err(|error| UserError::runtime(error.to_string(), error.hint()))?;
    let wanted = forecast.wanted();
    let next = AtomicUsize::new(0);
    let runs: Mutex<Vec<Run>> = Mutex::new(Vec::with_capacity(wanted.len()));
    let work = || {
        while let Some(cpus) = wanted.get(next.fetch_add(1, Ordering::Relaxed)) {
            let run = forecast.at(*cpus);
            runs.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).push(run);
        }
    };
    let cores = std::thread::available_parallelism().map_or(1, usize::from).min(wanted.len());
    std::thread::scope(|scope| {
        for _ in 1..cores {
            scope.spawn(work);
        }
        work();
    });
    let runs = runs.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner());
    Ok(forecast.conclude(runs))
}
