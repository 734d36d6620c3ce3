//! `longpole compare-metrics`

use super::output::{to_reader, to_stdout};
use crate::cli::study::CompareMetricsArguments;
use crate::exit::{Outcome, UserError};
use crate::input::Input;
use crate::present::study::metrics;
use crate::present::style;
use engine::metrics::metrics as compare;
use engine::program::Samples;
use engine::report::Cpus;

/// Reads an input, computes and shows all metrics. A deadlock is a finding, not an error.
pub fn run(args: &CompareMetricsArguments) -> Result<Outcome, UserError> {
    let input = args.studied.input.plan();
    let mut program = Input::open(&input)?.into_program();
    if args.studied.probed_only {
        program.samples = Samples::default();
    }
    let model = super::model(args.studied.scheduling.model);
    let cpus = args.cpus.or(program.recorded_cpus.and_then(Cpus::count)).unwrap_or(Cpus::Infinite);
    let result = compare(&program, args.all, cpus, args.top, &model).map_err(super::invalid)?;
    if args.json {
        to_stdout(|out| metrics::json(&result, out))?;
    } else {
        let frame = super::frame(&input, &program, &[cpus], &model);
        to_reader(|out| metrics::text(&result, &frame, args.top, &style::for_stdout(), out))?;
    }
    Ok(Outcome::Done)
}
