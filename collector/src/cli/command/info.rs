//! `longpole info`

use super::output::{to_reader, to_stdout};
use crate::cli::args::InfoArguments;
use crate::exit::{Outcome, UserError};
use crate::input::Input;
use crate::plan::InputPlan;
use crate::plan::part::Part;
use crate::present::{info, style};

/// Shows what a session or a program holds.
pub fn run(args: &InfoArguments) -> Result<Outcome, UserError> {
    let plan = InputPlan::of(args.file.clone(), Part { whole: true, ..Part::default() });
    let input = Input::open(&plan)?;
    let facts = match &input {
        Input::Session(read) => info::Facts::of_session(&read.recording, &read.info),
        Input::Program(program) => info::Facts::of_program(program),
    };
    if args.json {
        to_stdout(|out| info::json(&facts, out))?;
    } else {
        let limit = crate::live::limit_of_input(input, facts.events());
        let beside = info::Beside { limit: limit.as_deref(), file: &super::file_name(&plan) };
        to_reader(|out| info::text(&facts, beside, &style::for_stdout(), out))?;
    }
    Ok(Outcome::Done)
}
