//! `longpole info`

use super::output::{to_reader, to_stdout};
use crate::cli::input::Input;
use crate::cli::plan::InfoPlan;
use crate::cli::{Outcome, UserError};
use crate::present::{info, style};

/// Shows what a session or a program holds.
pub fn run(plan: &InfoPlan) -> Result<Outcome, UserError> {
    let facts = match Input::open(&plan.input)? {
        Input::Session(read) => info::Facts::of_session(&read.0, &read.1),
        Input::Program(program) => info::Facts::of_program(&program),
    };
    if plan.json {
        to_stdout(|out| info::json(&facts, out))?;
    } else {
        to_reader(|out| info::text(&facts, &style::for_stdout(), out))?;
    }
    Ok(Outcome::Done)
}
