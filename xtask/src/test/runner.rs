//! Finds cargo-nextest on PATH, or builds it once under target.

use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use anyhow::{Result, bail};

use crate::command;
use crate::workspace::Workspace;

const VERSION: &str = "0.9.151";

/// Path of a working cargo-nextest.
///
/// # Errors
/// There is none, and none can be built.
pub fn provide(workspace: &Workspace) -> Result<PathBuf> {
    let home = workspace.tools().join(format!("cargo-nextest-{VERSION}"));
    let own = home.join("bin/cargo-nextest");
    let works = |program: &PathBuf| works(workspace, program);
    if let Some(found) = [PathBuf::from("cargo-nextest"), own.clone()].into_iter().find(works) {
        return Ok(found);
    }
    println!("building cargo-nextest {VERSION} (once)");
    let mut install = command::cargo(workspace);
    install
        .args([
            "install",
            "cargo-nextest",
            "--locked",
            "--no-track",
            "--force",
            "--version",
            VERSION,
            "--root",
        ])
        .arg(&home);
    install.args(["--no-default-features", "--features", "default-no-update"]);
    // The runner only starts tests and waits for them. So fast compiling is worth more than a fast runner.
    install.args(["--debug", "--config", "profile.dev.debug=false", "--config", "profile.dev.opt-level=0"]);
    let scratch = home.join("build");
    install.arg("--target-dir").arg(&scratch);
    let outcome = command::capture(&mut install, Duration::from_secs(1800))?;
    // These hundreds of megabytes are not needed any more. If they cannot be removed, they do no harm.
    drop(std::fs::remove_dir_all(&scratch));
    if !works(&own) {
        eprint!("{}", outcome.output);
        bail!("cargo-nextest could not be built ({}): it needs a network once", outcome.ending());
    }
    Ok(own)
}

/// Whether the program runs and is new enough for `.config/nextest.toml`.
fn works(workspace: &Workspace, program: &PathBuf) -> bool {
    let mut ask = Command::new(program);
    ask.current_dir(&workspace.root).args(["nextest", "show-config", "version"]);
    ask.output().is_ok_and(|output| output.status.success())
}
