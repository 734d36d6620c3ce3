//! A recording that a test makes, in a folder that is removed together with it.

use std::path::{Path, PathBuf};

use tempfile::TempDir;

use crate::longpole::Longpole;
use crate::process::{Background, Ended};
use crate::report::{Program, Report};

/// A session file and how `longpole record` ended.
pub struct Recorded {
    /// The session file.
    pub file: PathBuf,
    /// How `longpole record` ended. Its output includes that of the program that it launched.
    pub ended: Ended,
    folder: TempDir,
}

impl Recorded {
    /// Runs `longpole record OPTIONS -o FILE -- PROGRAM ARGUMENTS`, with any ending.
    pub fn launch(options: &[&str], program: &Path, arguments: &[&str]) -> Self {
        let (mut call, folder, file) = record(options);
        call.command().arg("--").arg(program).args(arguments);
        Self { ended: call.run(), file, folder }
    }

    /// Like `launch`, but in the background. Also returns the folder that contains the file.
    pub fn launch_in_background(
        options: &[&str],
        program: &Path,
        arguments: &[&str],
    ) -> (Background, TempDir, PathBuf) {
        let (mut call, folder, file) = record(options);
        call.command().arg("--").arg(program).args(arguments);
        (call.start(), folder, file)
    }

    /// Like `launch`, for a program that must end with code 0.
    pub fn good(options: &[&str], program: &Path, arguments: &[&str]) -> Self {
        let recorded = Self::launch(options, program, arguments);
        let ended = &recorded.ended;
        assert_eq!(ended.code, Some(0), "{}\n{}", ended.stdout, ended.stderr);
        recorded
    }

    /// Runs `longpole record OPTIONS -o FILE -p PID`, which must end with code 0.
    pub fn attach(options: &[&str], pid: u32) -> Self {
        let (call, folder, file) = record(options);
        Self { ended: call.and("-p").and(pid.to_string()).ok(), file, folder }
    }

    /// Like `attach`, but in the background. Also returns the folder that contains the file.
    pub fn attach_in_background(options: &[&str], pid: u32) -> (Background, TempDir, PathBuf) {
        let (call, folder, file) = record(options);
        (call.and("-p").and(pid.to_string()).start(), folder, file)
    }

    /// The report of the recording.
    pub fn report(&self, cpus: &str) -> Report {
        Longpole::report(&self.file, cpus)
    }

    /// The recording as a program. Panics if records were lost, because counts would not be exact then.
    pub fn program(&self) -> Program {
        assert_eq!(self.report("1").trust("lost"), 0.0, "{}", self.ended.stderr);
        Longpole::export(&self.file)
    }

    /// The path of a file with this name next to the recording.
    pub fn beside(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }
}

/// The call `longpole record OPTIONS -o FILE`, the file's folder, and the file.
fn record(options: &[&str]) -> (Longpole, TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap_or_else(|error| panic!("no temporary folder: {error}"));
    let file = folder.path().join("test.lp");
    let mut call = Longpole::with(["record", "-o"]).and(&file);
    call.command().args(options);
    (call, folder, file)
}
