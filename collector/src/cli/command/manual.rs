//! `longpole completions` and `longpole man`: the texts of `--help`, for shells and for man.

use super::output::to_stdout;
use crate::cli::args::Arguments;
use crate::exit::{Outcome, UserError};
use clap::CommandFactory;
use clap_complete::Shell;
use std::path::Path;

/// Prints the completion script for a shell.
pub fn completions(shell: Shell) -> Result<Outcome, UserError> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Arguments::command(), "longpole", &mut script);
    to_stdout(|out| out.write_all(&script))?;
    Ok(Outcome::Done)
}

/// Writes `longpole.1`, and `longpole-COMMAND.1` for each command, into this folder.
pub fn pages(folder: &Path) -> Result<Outcome, UserError> {
    clap_mangen::generate_to(Arguments::command(), folder).map_err(|error| {
        UserError::runtime(
            format!("no manual pages in {}: {error}", folder.display()),
            "give a folder that exists and can be written: `longpole man DIR`",
        )
    })?;
    Ok(Outcome::Done)
}
