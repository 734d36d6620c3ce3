//! `./x build`: builds the release binary, which contains the kernel programs.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Result, bail};

use crate::command;
use crate::embed;
use crate::workspace::Workspace;

/// Builds longpole, and prints the path of the binary.
///
/// # Errors
/// Something does not compile.
pub fn run() -> Result<ExitCode> {
    println!("{}", release(&Workspace::find())?.display());
    Ok(ExitCode::SUCCESS)
}

/// Builds `target/release/longpole`, and shows cargo's own progress.
///
/// # Errors
/// longpole does not compile.
pub fn release(workspace: &Workspace) -> Result<PathBuf> {
    if let Err(reason) = embed::bring_up_to_date(workspace)? {
        eprintln!("xtask: {reason}");
    }
    let mut build = command::cargo(workspace);
    // The same call as in ./x, so that cargo compiles nothing twice.
    build.args(["build", "--release", "--locked", "--package", "xtask", "--package", "collector", "--bins"]);
    let status = build.status()?;
    if !status.success() {
        bail!("building longpole: {status}");
    }
    Ok(workspace.target.join("release/longpole"))
}
