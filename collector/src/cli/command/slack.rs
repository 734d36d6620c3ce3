//! `longpole slack`

use super::output::{to_reader, to_stdout};
use crate::cli::study::SlackArguments;
use crate::exit::{Outcome, UserError};
use crate::present::{study::slack, style};
use engine::program::is_start_up;

/// Reads an input, computes and shows slack. A deadlock is a finding, not an error.
pub fn run(args: &SlackArguments) -> Result<Outcome, UserError> {
    let input = args.studied.input.plan();
    let studied = super::studied(&input, args.studied.probed_only, args.all)?;
    let model = super::model(args.studied.scheduling.model);
    let simulated = args.top.min(super::SIMULATED);
    let changed = studied.changed();
    let mut report = engine::graph::slack_report(
        &studied.program,
        (&changed, &studied.owners),
        args.segments,
        simulated,
        &model,
    )
    .map_err(super::invalid)?;
    if args.json {
        to_stdout(|out| slack::json(&report, args.segments, out))?;
    } else {
        report.functions.retain(|row| args.all || !is_start_up(&row.function));
        let frame = super::frame(&input, &studied.own, &super::usual_cpus(), &model);
        to_reader(|out| slack::text(&report, &frame, args.top, &style::for_stdout(), out))?;
    }
    Ok(Outcome::Done)
}
