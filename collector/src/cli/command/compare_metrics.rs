//! `longpole compare-metrics`

use super::output::{to_reader, to_stdout};
use crate::exit::{Outcome, UserError};
use crate::input::Input;
use crate::plan::CompareMetricsPlan;
use crate::present::study::metrics;
use crate::present::style;
use engine::metrics::metrics as compare;
use engine::program::Samples;
use engine::report::Cpus;

/// Reads, computes all metrics, shows. A deadlock is a finding, not an error.
pub fn run(plan: &CompareMetricsPlan) -> Result<Outcome, UserError> {
    let mut program = Input::open(&plan.input)?.into_program();
    if plan.probed_only {
        program.samples = Samples::default();
    }
    let model = super::model(plan.scheduler);
    let cpus = plan.cpus.or(program.recorded_cpus.and_then(Cpus::count)).unwrap_or(Cpus::Infinite);
    let result = compare(&program, cpus, plan.top, &model).map_err(super::invalid)?;
    if plan.json {
        to_stdout(|out| metrics::json(&result, out))?;
    } else {
        let frame = super::frame(&plan.input, &program, &[cpus], &model);
        to_reader(|out| metrics::text(&result, &frame, plan.top, &style::for_stdout(), out))?;
    }
    Ok(Outcome::Done)
}
