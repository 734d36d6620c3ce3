//! `longpole export`

use super::output::to_stdout;
use crate::cli::input::Input;
use crate::cli::plan::{ExportFormat, ExportPlan, OutputPlan};
use crate::cli::{Outcome, UserError};
use crate::session::{CreateError, Overwrite, create_file};
use engine::program::{Program, json};
use std::io;

/// Reads and writes in another format.
pub fn run(plan: &ExportPlan) -> Result<Outcome, UserError> {
    let input = Input::open(&plan.input)?;
    let program = if plan.raw { input.raw() } else { input }.into_program();
    program.check().map_err(|error| UserError::runtime(error.to_string(), error.hint()))?;
    match &plan.output {
        OutputPlan::Stdout => to_stdout(|out| write(&program, plan.format, out))?,
        OutputPlan::File(path) => {
            let overwrite = if plan.force { Overwrite::AnyFile } else { Overwrite::Devices };
            let file = create_file(path, overwrite)?;
            write(&program, plan.format, file).map_err(|error| CreateError::io(path, error))?;
        }
    }
    Ok(Outcome::Done)
}

fn write(program: &Program, format: ExportFormat, out: impl io::Write) -> io::Result<()> {
    match format {
        ExportFormat::Program => json::write(program, out),
    }
}
