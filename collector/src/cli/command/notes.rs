//! `longpole notes`

use super::output::to_reader;
use crate::cli::args::NotesArguments;
use crate::exit::{Outcome, UserError};
use crate::input::Input;
use crate::present::style;
use crate::present::text::notes;
use engine::attribution::Grouping;
use engine::report::{Cpus, Detail};

/// Shows all notes on a recording. Notes that can change the answer come first.
pub fn run(args: &NotesArguments) -> Result<Outcome, UserError> {
    let program = Input::open(&args.input.plan())?.into_program();
    let cpus: Vec<Cpus> =
        program.recorded_cpus.and_then(Cpus::count).into_iter().chain([Cpus::Infinite]).collect();
    let model = super::model(None);
    let mut report =
        super::report_on_all_cores(&program, &cpus, Detail::Functions, Grouping::Function, &model);
    report.findings.extend(super::limit_on_all_cores(&program, &cpus, &model).doubts(program.overhead));
    to_reader(|out| notes::write(&report, &style::for_stdout(), out))?;
    Ok(Outcome::Done)
}
