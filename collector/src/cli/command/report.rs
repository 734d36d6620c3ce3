//! `longpole report`

use super::output::{to_reader, to_stdout};
use crate::cli::input::Input;
use crate::cli::plan::ReportPlan;
use crate::cli::{Outcome, UserError};
use crate::present::{json, style, text};
use engine::program::Samples;
use engine::report::Detail;

/// Reads, analyses, shows. A deadlock and damage to a session are findings, not errors.
pub fn run(plan: &ReportPlan) -> Result<Outcome, UserError> {
    let mut input = Input::open(&plan.input)?;
    if let Input::Session(read) = &mut input {
        super::symbolize::in_memory(&mut read.0, &plan.symbols)?;
    }
    let mut program = if plan.raw { input.raw() } else { input }.into_program();
    if plan.probed_only {
        program.samples = Samples::default();
    }
    let detail = if plan.segments { Detail::Segments } else { Detail::Functions };
    let model = super::model(plan.scheduler);
    let report = super::report_on_all_cores(&program, &plan.cpus, detail, plan.by.grouping(), &model);
    if plan.json {
        let options = json::Options { segments: plan.segments, by: plan.by.grouping() };
        to_stdout(|out| json::write(&report, options, out))?;
    } else {
        let headline = engine::report::headline(&report).unwrap_or_default();
        let options = text::Options { by: plan.by, top: plan.top, segments: plan.segments };
        to_reader(|out| text::write(&report, &headline, options, &style::for_stdout(), out))?;
    }
    Ok(Outcome::Done)
}
