//! `./x soak`: attaches to programs in seven languages and detaches again, as often as the user wants. The test suite
//! does so a few times.

use std::process::ExitCode;

use anyhow::Result;

use crate::command;
use crate::measure;
use crate::workspace::Workspace;

/// How often.
#[derive(clap::Args)]
pub struct Options {
    /// Times that each program is attached to
    #[arg(long, value_name = "N", default_value = "200")]
    rounds: u32,
}

/// Runs the soak tests. The tests print the result for each language, or why there is none.
///
/// # Errors
///
/// longpole cannot be built, or cannot record on this machine.
pub fn run(options: &Options) -> Result<ExitCode> {
    let workspace = Workspace::find();
    let longpole = measure::recorder(&workspace)?;
    let mut test = command::cargo(&workspace);
    test.args(["test", "--quiet", "--locked", "--package", "longpole-tests", "--test", "live", "harm::soak"]);
    test.args(["--", "--nocapture", "--test-threads", "1"]);
    test.env("LONGPOLE_BIN", longpole).env("LONGPOLE_SOAK_ROUNDS", options.rounds.to_string());
    let status = test.status()?;
    println!(
        "soak: {}, {} times each",
        if status.success() { "no program was harmed" } else { "FAILED, see above" },
        options.rounds
    );
    Ok(if status.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
