//! What measurements need: a recorder, example programs, a folder for what they write.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::build;
use crate::command;
use crate::embed;
use crate::sample::Sample;
use crate::workspace::Workspace;

/// A release binary that can record here.
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

/// An example program of the engine, built as released.
pub fn engine_example(workspace: &Workspace, name: &str) -> Result<PathBuf> {
    example(workspace, name, &["--package", "engine", "--features", "synth"])
}

/// An example program of a package, built as released.
pub fn example(workspace: &Workspace, name: &str, package: &[&str]) -> Result<PathBuf> {
    let mut build = command::cargo(workspace);
    build.args(["build", "--release", "--locked"]).args(package).args(["--example", name]);
    command::must(&mut build, "building an example program")?;
    Ok(workspace.target.join("release/examples").join(name))
}

/// The numbers that an example program prints, of all its runs.
#[derive(Default)]
pub struct Figures(BTreeMap<String, Sample>);

impl Figures {
    /// Those of one run more: the program prints one line of JSON.
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

    /// The number of this name.
    ///
    /// # Errors
    /// The program does not print it.
    pub fn of(&self, name: &str) -> Result<&Sample> {
        self.0.get(name).with_context(|| format!("no {name}"))
    }
}

/// A scratch folder under target, removed at the end.
pub struct Scratch(pub PathBuf);

impl Scratch {
    /// A new one.
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
        // Only files of ours are in it; a leftover under target does no harm.
        drop(std::fs::remove_dir_all(&self.0));
    }
}
