//! Tools for measurements: a longpole that may record, example programs, a folder for files.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::build;
use crate::command;
use crate::embed;
use crate::sample::Sample;
use crate::workspace::Workspace;

/// Builds a release binary, which must be able to record here.
///
/// # Errors
/// It does not compile, or nothing can be recorded here.
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

/// Builds an example program of the engine, as released.
pub fn engine_example(workspace: &Workspace, name: &str) -> Result<PathBuf> {
    example(workspace, name, &["--package", "engine", "--features", "synth"])
}

/// Builds an example program of a package, as released.
pub fn example(workspace: &Workspace, name: &str, package: &[&str]) -> Result<PathBuf> {
    let mut build = command::cargo(workspace);
    build.args(["build", "--release", "--locked"]).args(package).args(["--example", name]);
    command::must(&mut build, "building an example program")?;
    Ok(workspace.target.join("release/examples").join(name))
}

/// Numbers that an example program prints, by name, from all of its runs.
#[derive(Default)]
pub struct Figures(BTreeMap<String, Sample>);

impl Figures {
    /// Adds a run: the program prints one line of JSON.
    ///
    /// # Errors
    /// It fails, or prints something else.
    pub fn add(&mut self, command: &mut Command) -> Result<()> {
        let line = command::text(command)?;
        let said: serde_json::Map<_, _> = serde_json::from_str(&line)
            .with_context(|| format!("{} says no JSON", command.get_program().display()))?;
        let numbers = said.into_iter().filter_map(|(name, value)| Some((name, value.as_f64()?)));
        numbers.for_each(|(name, number)| self.0.entry(name).or_default().push(number));
        Ok(())
    }

    /// The measurements with this name.
    ///
    /// # Errors
    ///
    /// The program does not print the name.
    pub fn of(&self, name: &str) -> Result<&Sample> {
        self.0.get(name).with_context(|| format!("no {name}"))
    }
}

/// Result of a program that ran under watch.
pub struct Watched {
    /// The program's exit status; `None`: it was killed at the limit.
    pub status: Option<ExitStatus>,
    /// Seconds from the program's start to its end.
    pub seconds: f64,
    /// Its largest memory, KiB.
    pub peak_kib: u64,
}

/// Runs a program until it ends, or until the limit.
///
/// # Errors
///
/// The program cannot be started.
pub fn watched(command: &mut Command, limit: Duration) -> std::io::Result<Watched> {
    let began = Instant::now();
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
    let mut peak_kib = 0;
    let status = loop {
        peak_kib = peak_kib.max(memory_kib(child.id(), "VmHWM:").unwrap_or(0));
        if let Some(status) = child.try_wait()? {
            break Some(status);
        }
        if began.elapsed() > limit {
            child.kill()?;
            child.wait()?;
            break None;
        }
        std::thread::sleep(Duration::from_millis(1));
    };
    Ok(Watched { status, seconds: began.elapsed().as_secs_f64(), peak_kib })
}

/// A figure of a process's memory in /proc/PID/status, KiB.
pub fn memory_kib(pid: u32, name: &str) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_whitespace().next()?.parse().ok()
}

/// A scratch folder under target, removed at the end.
pub struct Scratch(pub PathBuf);

impl Scratch {
    /// Makes the folder.
    ///
    /// # Errors
    /// It cannot be made.
    pub fn new(workspace: &Workspace, name: &str) -> Result<Self> {
        let folder = workspace.target.join("bench").join(format!("{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder)?;
        Ok(Self(folder))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // Only files of xtask are in the folder; a leftover under target does no harm.
        drop(std::fs::remove_dir_all(&self.0));
    }
}
