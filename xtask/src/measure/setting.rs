//! The surroundings of a measurement: a longpole, example programs, a folder for files, and the user's options.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Result, bail};
use longpole_tests::{run, shell};

use crate::build;
use crate::command;
use crate::embed;
use crate::workspace::Workspace;

/// The user's options.
#[derive(Clone, Default)]
pub struct Wishes {
    /// Number of runs of each side.
    pub runs: Option<usize>,
    /// Beginnings of the names of programs to measure. If the list is empty, all programs are measured.
    pub programs: Vec<String>,
    /// Whether to measure a recording that takes minutes, too.
    pub huge: bool,
    /// Path of a clone of Splash-4.
    pub sources: Option<PathBuf>,
    /// A longpole binary to use instead of building one.
    pub longpole: Option<PathBuf>,
    /// Number of minutes after which no other program begins.
    pub minutes: Option<u64>,
    /// Whether to keep the figures of an earlier run.
    pub resume: bool,
}

/// The surroundings of a measurement.
pub struct Setting {
    /// The workspace with the sources.
    pub workspace: Workspace,
    /// The longpole binary that is measured.
    pub longpole: PathBuf,
    /// A folder for files, which is removed afterwards.
    pub folder: PathBuf,
    /// The user's options.
    pub wishes: Wishes,
    /// Number of runs or repetitions.
    pub runs: usize,
}

impl Setting {
    /// Whether the user wants this program to be measured.
    pub fn wants(&self, name: &str) -> bool {
        let programs = &self.wishes.programs;
        programs.is_empty() || programs.iter().any(|only| name.starts_with(only.as_str()))
    }

    /// A call of longpole with these arguments.
    pub fn call(&self, words: &str) -> std::process::Command {
        command::line(&self.longpole, words)
    }

    /// A path in the folder for files.
    pub fn file(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// Builds an example program of the engine in release mode.
    pub fn engine_example(&self, name: &str) -> Result<PathBuf> {
        self.example(name, "--package engine --features synth")
    }

    /// Builds an example program of a package in release mode.
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

/// Builds a release binary. A binary that cannot record on this machine is an error.
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

/// Builds a workload, and returns its path as text for a command line.
pub fn built(source: &str) -> Result<String> {
    Ok(longpole_tests::workload::build(source)?.display().to_string())
}

/// Whether this program is installed.
pub fn is_here(program: &str) -> bool {
    let mut look = shell(&format!("command -v {program} || test -x /usr/sbin/{program}"));
    run(&mut look, Duration::from_secs(60)).is_ok_and(|ended| ended.code == Some(0))
}

/// A temporary folder under target, which is removed when this value is dropped.
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
        // The folder contains only files of this run. If it stays under target, it does no harm.
        drop(std::fs::remove_dir_all(&self.0));
    }
}
