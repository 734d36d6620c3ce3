//! A recording made for a test, gone with it.

use std::path::{Path, PathBuf};

use tempfile::TempDir;

use crate::longpole::Longpole;
use crate::process::{Background, Ended};
use crate::report::{Program, Report};

/// A session file and how `longpole record` ended.
pub struct Recorded {
    /// The session file.
    pub file: PathBuf,
    /// What `longpole record` (and the program it launched) said.
    pub ended: Ended,
    folder: TempDir,
}

impl Recorded {
    /// `longpole record OPTIONS -o FILE -- PROGRAM ARGUMENTS`, however it ends.
    pub fn launch(options: &[&str], program: &Path, arguments: &[&str]) -> Self {
        let (folder, file) = place();
        let mut call = Longpole::with(["record"]).and("-o").and(&file);
        call.command().args(options).arg("--").arg(program).args(arguments);
        Self { ended: call.run(), file, folder }
    }

    /// The same for a program that must end with code 0.
    pub fn good(options: &[&str], program: &Path, arguments: &[&str]) -> Self {
        let recorded = Self::launch(options, program, arguments);
        let ended = &recorded.ended;
        assert_eq!(ended.code, Some(0), "{}\n{}", ended.stdout, ended.stderr);
        recorded
    }

    /// `longpole record OPTIONS -o FILE -p PID`, which must end with code 0.
    pub fn attach(options: &[&str], pid: u32) -> Self {
        let (folder, file) = place();
        let mut call = Longpole::with(["record", "-p", &pid.to_string()]).and("-o").and(&file);
        call.command().args(options);
        Self { ended: call.ok(), file, folder }
    }

    /// The same in the background, with the folder that holds the file.
    pub fn attach_in_background(options: &[&str], pid: u32) -> (Background, TempDir, PathBuf) {
        let (folder, file) = place();
        let mut call = Longpole::with(["record", "-p", &pid.to_string()]).and("-o").and(&file);
        call.command().args(options);
        (call.start(), folder, file)
    }

    /// Its report.
    pub fn report(&self, cpus: &str) -> Report {
        Longpole::report(&self.file, cpus)
    }

    /// What its threads did. Nothing may have been lost: exact counts would be chance.
    pub fn program(&self) -> Program {
        assert_eq!(self.report("1").trust("lost"), 0.0, "{}", self.ended.stderr);
        Longpole::export(&self.file)
    }

    /// A file next to the recording.
    pub fn beside(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }
}

fn place() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap_or_else(|error| panic!("no temporary folder: {error}"));
    let file = folder.path().join("test.lp");
    (folder, file)
}
