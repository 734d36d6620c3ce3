//! `longpole slack`

use super::output::{to_reader, to_stdout};
use crate::cli::study::SlackPlan;
use crate::cli::{Outcome, UserError};
use crate::present::{study::slack, style};

/// Reads, analyses, shows. A deadlock is a finding, not an error.
pub fn run(plan: &SlackPlan) -> Result<Outcome, UserError> {
    let program = super::studied(&plan.input, plan.probed_only)?;
    let report = engine::graph::slack_report(&program, plan.segments, &super::model(plan.scheduler))
        .map_err(super::invalid)?;
    if plan.json {
        to_stdout(|out| slack::json(&report, plan.segments, out))?;
    } else {
        to_reader(|out| slack::text(&report, plan.top, &style::for_stdout(), out))?;
    }
    Ok(Outcome::Done)
}
