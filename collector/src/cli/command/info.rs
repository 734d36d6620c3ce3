//! `longpole info`

use super::output::{to_reader, to_stdout};
use crate::cli::args::InfoArguments;
use crate::exit::{Outcome, UserError};
use crate::input::Input;
use crate::live::{limit_and_cost, limit_of_input};
use crate::plan::part::RecordingPart;
use crate::plan::{InputPlan, Source};
use crate::present::style;
use crate::present::text::info;

/// Shows what a session or a program contains.
pub fn run(args: &InfoArguments) -> Result<Outcome, UserError> {
    let plan = InputPlan::of(args.file.clone(), RecordingPart::default());
    let source = plan.source.resolved()?;
    let input = Input::open_without_events(&source)?;
    let facts = match &input {
        Input::Session(read) => {
            info::Facts::of_session(&read.recording, &read.info).unread(read.without_events)
        }
        Input::Program(program) => info::Facts::of_program(program),
    };
    if args.json {
        to_stdout(|out| info::json(&facts, out))?;
    } else {
        let limit = match (&input, &source) {
            (Input::Session(read), Source::File(path)) if read.without_events => {
                limit_and_cost(path, facts.events()).0
            }
            _ => limit_of_input(input, facts.events()),
        };
        let beside = info::Beside { limit: limit.as_deref(), file: &super::file_name(&plan) };
        to_reader(|out| info::text(&facts, beside, &style::for_stdout(), out))?;
    }
    Ok(Outcome::Done)
}
