//! `longpole slack`

use super::output::{to_reader, to_stdout};
use crate::exit::{Outcome, UserError};
use crate::plan::SlackPlan;
use crate::present::{study::slack, style};
use engine::attribution::is_start_up;

/// Reads, analyses, shows. A deadlock is a finding, not an error.
pub fn run(plan: &SlackPlan) -> Result<Outcome, UserError> {
    let studied = super::studied(&plan.input, plan.probed_only, plan.all || plan.json)?;
    let model = super::model(plan.scheduler);
    let simulated = plan.top.min(super::SIMULATED);
    let mut report = engine::graph::slack_report(&studied.program, plan.segments, simulated, &model)
        .map_err(super::invalid)?;
    if plan.json {
        to_stdout(|out| slack::json(&report, plan.segments, out))?;
    } else {
        report.functions.retain(|row| plan.all || !is_start_up(&row.function));
        let frame = super::frame(&plan.input, &studied.own, &super::usual_cpus(), &model);
        to_reader(|out| slack::text(&report, &frame, plan.top, &style::for_stdout(), out))?;
    }
    Ok(Outcome::Done)
}
