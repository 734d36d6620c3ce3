//! What measurements have at hand: a longpole, example programs, a folder for files, and what the user asked for.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Result, bail};
use longpole_tests::{run, shell};

use crate::build;
use crate::command;
use crate::embed;
use crate::workspace::Workspace;

/// What the command line asks for.
#[derive(Clone, Default)]
pub struct Wishes {
    /// Runs of each side.
    pub runs: Option<usize>,
    /// Beginnings of names of programs; all programs if there are none.
    pub programs: Vec<String>,
    /// Also a recording that takes minutes.
    pub huge: bool,
    /// A clone of Splash-4.
    pub sources: Option<PathBuf>,
    /// A binary, instead of building one.
    pub longpole: Option<PathBuf>,
    /// Begin no other program after this time.
    pub minutes: Option<u64>,
    /// Keep figures of an earlier run.
    pub resume: bool,
}

/// Surroundings of a measurement.
pub struct Setting {
    /// The sources.
    pub workspace: Workspace,
    /// The longpole that is measured.
    pub longpole: PathBuf,
    /// A folder for files, removed afterwards.
    pub folder: PathBuf,
    /// What the user asked for.
    pub wishes: Wishes,
    /// How often to run or to repeat.
    pub runs: usize,
}

impl Setting {
    /// Whether the user asked for this program.
    pub fn wants(&self, name: &str) -> bool {
        let programs = &self.wishes.programs;
        programs.is_empty() || programs.iter().any(|only| name.starts_with(only.as_str()))
    }

    /// A call of longpole with these words.
    pub fn call(&self, words: &str) -> std::process::Command {
        command::line(&self.longpole, words)
    }

    /// A path in the folder for files.
    pub fn file(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// Builds an example program of the engine, as released.
    pub fn engine_example(&self, name: &str) -> Result<PathBuf> {
        self.example(name, "--package engine --features synth")
    }

    /// Builds an example program of a package, as released.
    pub fn example(&self, name: &str, package: &str) -> Result<PathBuf> {
        let mut build = command::cargo(&self.workspace);
        build
            .args(["build", "--release", "--locked"])
            .args(package.split_whitespace())
            .args(["--example", name]);
        command::must(&mut build, "building an example program")?;
        Ok(self.workspace.target.join("release/examples").join(name))
    }
}

/// Builds a release binary, which must be able to record here.
pub fn recorder(workspace: &Workspace) -> Result<PathBuf> {
    if let Err(reason) = embed::bring_up_to_date(workspace)? {
        bail!("cannot measure recording: {reason}");
    }
    let longpole = build::release(workspace)?;
    if let Some(reason) = longpole_tests::cannot_record() {
        bail!("cannot measure recording: {reason}");
    }
    Ok(longpole)
}

/// Builds a workload; returns its path as text for a command line.
pub fn built(source: &str) -> Result<String> {
    Ok(longpole_tests::workload::build(source)?.display().to_string())
}

/// Whether this program is installed.
pub fn is_here(program: &str) -> bool {
    let mut look = shell(&format!("command -v {program} || test -x /usr/sbin/{program}"));
    run(&mut look, Duration::from_secs(60)).is_ok_and(|ended| ended.code == Some(0))
}

/// A scratch folder under target, removed at the end.
pub struct Scratch(pub PathBuf);

impl Scratch {
    /// Makes the folder.
    pub fn new(workspace: &Workspace, name: &str) -> Result<Self> {
        let folder = workspace.target.join("bench").join(format!("{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder)?;
        Ok(Self(folder))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // Only files of ours are in it; a leftover under target does no harm.
        drop(std::fs::remove_dir_all(&self.0));
    }
}
