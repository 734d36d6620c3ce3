//! `longpole paths`

use super::output::to_stdout;
use crate::cli::input::Input;
use crate::cli::study::PathsPlan;
use crate::cli::{Outcome, UserError};
use crate::present::study::{paths, paths_json};
use crate::present::style;
use engine::graph::PathsWanted;

/// Reads, analyses, shows. A deadlock is a finding, not an error; fewer paths than asked for are all there are.
pub fn run(plan: &PathsPlan) -> Result<Outcome, UserError> {
    let program = Input::open(&plan.input)?.into_program();
    let wanted = PathsWanted {
        most: plan.most,
        within: plan.within,
        routes: if plan.show.is_some() { 0 } else { paths::ROUTES },
        shown: plan.show,
        segments: plan.segments,
    };
    let report = engine::graph::paths_report(&program, &wanted).map_err(super::invalid)?;
    if plan.json {
        to_stdout(|out| paths_json::json(&report, plan.segments, out))?;
    } else {
        to_stdout(|out| paths::text(&report, plan.top, plan.show, &style::for_stdout(), out))?;
    }
    Ok(Outcome::Done)
}
