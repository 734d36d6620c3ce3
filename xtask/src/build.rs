//! `./x build`: the release binary with the kernel programs inside.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Result, bail};

use crate::command;
use crate::embed;
use crate::workspace::Workspace;

/// Builds and says where the binary is.
///
/// # Errors
/// Something does not compile.
pub fn run() -> Result<ExitCode> {
    println!("{}", release(&Workspace::find())?.display());
    Ok(ExitCode::SUCCESS)
}

/// `target/release/longpole`; cargo's own progress is shown.
///
/// # Errors
/// It does not compile.
pub fn release(workspace: &Workspace) -> Result<PathBuf> {
    if let Err(reason) = embed::bring_up_to_date(workspace)? {
        eprintln!("xtask: {reason}");
    }
    let mut build = command::cargo(workspace);
    // The same call as in ./x, so that nothing is compiled in two ways.
    build.args(["build", "--release", "--locked", "--package", "xtask", "--package", "collector", "--bins"]);
    let status = build.status()?;
    if !status.success() {
        bail!("building longpole: {status}");
    }
    Ok(workspace.target.join("release/longpole"))
}
