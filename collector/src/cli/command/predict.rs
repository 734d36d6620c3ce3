//! `longpole predict`

use super::output::{to_reader, to_stdout};
use crate::cli::args::PredictArguments;
use crate::exit::{Outcome, UserError};
use crate::input::Input;
use crate::plan::part::RecordingPart;
use crate::plan::{InputPlan, is_dash};
use crate::present::{json, style, text};
use engine::predict::{Forecast, Model, Prediction, combine};
use engine::program::Program;
use engine::report::Cpus;

/// Reads all recordings, simulates each on every CPU count, shows the combined result. Limits are those of the first
/// recording.
pub fn run(args: PredictArguments) -> Result<Outcome, UserError> {
    if args.files.iter().filter(|file| is_dash(file)).count() > 1 {
        return Err(UserError::usage("standard input is asked for twice", "give - once"));
    }
    let model = Model {
        scheduler: args.scheduling.model,
        slice_ns: args.slice,
        switch_cost_ns: args.switch_cost,
        wake_latency_ns: args.wake_latency,
        wake_cost_ns: args.wake_cost,
        idle_tick_ns: args.idle_tick,
        quota: args.quota,
        devices: args.devices,
        io: args.io,
        seed: args.seed,
        runs: args.runs,
    };
    // Times of several recordings can only be compared if each recording is analysed completely.
    let whole = args.part.whole || args.files.len() > 1;
    let plan = |file| InputPlan::of(file, RecordingPart { whole, ..args.part.into() });
    let mut inputs: Vec<InputPlan> = args.files.into_iter().map(|file| plan(Some(file))).collect();
    if inputs.is_empty() {
        inputs.push(plan(None));
    }
    let mut predictions = Vec::with_capacity(inputs.len());
    let mut frame = None;
    for input in &inputs {
        let program = Input::open(input)?.into_program();
        predictions.push(prediction(&program, &args.cpus, &model)?);
        frame.get_or_insert_with(|| super::frame(input, &program, &args.cpus, &model));
    }
    // `inputs` is not empty, so both values exist.
    let (Some(mut prediction), Some(frame)) = (combine(predictions), frame) else { return Ok(Outcome::Done) };
    if args.json {
        prediction.findings.extend(frame.doubts);
        to_stdout(|out| json::predict::write(&prediction, &frame.limits, out))?;
    } else {
        to_reader(|out| text::predict::write(&prediction, &frame, &style::for_stdout(), out))?;
    }
    Ok(Outcome::Done)
}

/// Predicts. CPU counts are independent of each other: each core of this machine takes the next one.
fn prediction(program: &Program, cpus: &[Cpus], model: &Model) -> Result<Prediction, UserError> {
    let forecast = Forecast::new(program, cpus, model)
        .map_err(|error| UserError::runtime(error.to_string(), error.hint()))?;
    let runs = super::on_all_cores(forecast.wanted(), |cpus| forecast.at(*cpus));
    Ok(forecast.conclude(runs))
}
