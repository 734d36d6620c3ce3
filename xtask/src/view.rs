//! `./x view`: makes the page of `longpole view` anew from `view/`, or proves that what is checked in is what its sources give.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context, Result};

use crate::command;
use crate::workspace::Workspace;

/// What is checked in.
const PAGE: &str = "collector/embedded/page/page.html";

/// `./x view`
#[derive(clap::Args)]
pub struct Options {
    /// Only compare what is checked in with what the sources give
    #[arg(long)]
    check: bool,
}

/// Makes or checks the page.
///
/// # Errors
/// There is no Node.js, its packages cannot be had, or the sources do not compile.
pub fn run(options: &Options) -> Result<ExitCode> {
    let workspace = Workspace::find();
    if options.check {
        let complaints = compare(&workspace)?.map_err(anyhow::Error::msg)?;
        complaints.iter().for_each(|complaint| eprintln!("{complaint}"));
        return Ok(if complaints.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE });
    }
    packages(&workspace)?.map_err(anyhow::Error::msg)?;
    make(&workspace, &workspace.root.join(PAGE))?;
    Ok(ExitCode::SUCCESS)
}

/// What differs, and what the page's own tests complain about; or why nothing can be made here.
///
/// # Errors
/// The sources do not compile.
pub fn compare(workspace: &Workspace) -> Result<Result<Vec<String>, String>> {
    if let Err(reason) = packages(workspace)? {
        return Ok(Err(reason));
    }
    let made = workspace.target.join("page.html");
    make(workspace, &made)?;
    let kept = workspace.root.join(PAGE);
    let mut complaints = Vec::new();
    if std::fs::read(&made).ok() != std::fs::read(&kept).ok() {
        complaints.push(format!("{PAGE} is not what its sources give: `./x view` renews it"));
    }
    let mut tests = node(workspace);
    tests.arg("test/run.mjs");
    if let Err(error) = command::must(&mut tests, "the page's own tests") {
        complaints.push(format!("{error:#}"));
    }
    Ok(Ok(complaints))
}

/// Installs what `view/package-lock.json` says, once.
fn packages(workspace: &Workspace) -> Result<Result<(), String>> {
    let folder = workspace.root.join("view");
    let is_there =
        |program: &str| Command::new(program).arg("--version").output().is_ok_and(|out| out.status.success());
    for program in ["node", "npm"] {
        if !is_there(program) {
            return Ok(Err(format!("there is no {program} here")));
        }
    }
    let lock = std::fs::read(folder.join("package-lock.json")).context("view/package-lock.json")?;
    let mark: PathBuf = folder.join("node_modules/.longpole-lock");
    if std::fs::read(&mark).is_ok_and(|installed| installed == lock) {
        return Ok(Ok(()));
    }
    let mut install = Command::new("npm");
    install.args(["ci", "--no-audit", "--no-fund", "--silent"]).current_dir(&folder);
    if let Err(error) = command::must(&mut install, "npm ci") {
        return Ok(Err(format!("the page's tools cannot be had: {error:#}")));
    }
    std::fs::write(&mark, lock).context("view/node_modules cannot be written")?;
    Ok(Ok(()))
}

fn make(workspace: &Workspace, to: &Path) -> Result<()> {
    let mut types = node(workspace);
    types.args(["node_modules/typescript/bin/tsc", "--noEmit"]);
    command::must(&mut types, "types of the page")?;
    command::must(node(workspace).arg("build.mjs").arg(to), "the page")
}

fn node(workspace: &Workspace) -> Command {
    let mut node = Command::new("node");
    node.current_dir(workspace.root.join("view"));
    node
}
