//! Compiles programs that use locks, records them, and counts their operations.

use engine::event::{PendingOperation, Recording};
use longpole_tests::workload::{self, Problem};
use longpole_tests::{Ended, Longpole, must_run};
use probe_abi::{Operation, Record, SyncOperation};
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

pub const LIMIT: Duration = Duration::from_secs(120);

/// A compiled program, and a folder for recordings of it.
pub struct Program {
    pub folder: tempfile::TempDir,
    pub path: PathBuf,
}

/// A recording of a program's operations.
pub struct Recorded {
    pub ended: Ended,
    pub recording: Recording,
    pub file: PathBuf,
    /// All operations in order. Bursts are replaced by single operations.
    operations: Vec<Operation>,
}

/// Compiles a program.
pub fn program(source: &str, compiler: &str, flags: &[&str]) -> Result<Program, Problem> {
    let flags = [&["-g", "-O1", "-pthread", "-w"], flags].concat();
    let path = workload::compile_text("program", compiler, &flags, source)?;
    Ok(Program { folder: tempfile::tempdir().expect("folder"), path })
}

/// Compiles a C program with the usual options.
pub fn c(source: &str) -> Result<Program, Problem> {
    program(source, "cc", &[])
}

impl Program {
    /// Ending and output of the program without a recording.
    pub fn alone(&self, words: &[&str]) -> Ended {
        must_run(Command::new(&self.path).args(words), LIMIT)
    }

    /// Runs `longpole record OPTIONS -- PROGRAM WORDS`. The library always records the program.
    pub fn record(&self, options: &[&str], words: &[&str]) -> Recorded {
        let path = self.path.to_string_lossy().into_owned();
        let command: Vec<&str> = std::iter::once(path.as_str()).chain(words.iter().copied()).collect();
        record_in(self.folder.path(), options, &command, &[])
    }
}

/// Runs `longpole record --interpose always OPTIONS -- COMMAND` with additional environment variables.
pub fn record_in(
    folder: &Path,
    options: &[&str],
    command: &[&str],
    variables: &[(&str, &OsStr)],
) -> Recorded {
    let file = folder.join("test.lp");
    let usual = ["record", "--interpose", "always", "--force"];
    let mut call = Longpole::with(usual);
    call.command().args(options).arg("-o").arg(&file).arg("--").args(command);
    call.command().envs(variables.iter().copied());
    Recorded::read(&file, call.run())
}

impl Recorded {
    /// Reads the recording. Panics if records were lost.
    pub fn read(file: &Path, ended: Ended) -> Recorded {
        let recording = match recording::read(file) {
            Ok((recording, _)) => recording,
            Err(error) => panic!("{error}\n{}", ended.stderr),
        };
        let loss = recording.facts.end.as_ref().map(|end| end.loss.lost());
        assert_eq!(loss, Some(0), "{}", ended.stderr);
        let operations = recording.events.iter().flat_map(|event| match event {
            Record::Operation(operation) => vec![*operation],
            Record::Burst(burst) => burst.each_operation().collect(),
            _ => Vec::new(),
        });
        let mut operations: Vec<Operation> = operations.collect();
        operations.sort_by_key(|operation| operation.header.time_ns);
        Recorded { ended, recording, file: file.to_owned(), operations }
    }

    /// All operations in order.
    pub fn operations(&self) -> impl Iterator<Item = &Operation> {
        self.operations.iter()
    }

    /// Number of operations of each kind in a process; in all processes if `pid` is 0.
    pub fn counts(&self, pid: u32) -> BTreeMap<SyncOperation, usize> {
        let mut counts = BTreeMap::new();
        for operation in self.operations().filter(|operation| pid == 0 || operation.header.pid == pid) {
            let name = SyncOperation::from_number(operation.operation).expect("known");
            *counts.entry(name).or_default() += 1;
        }
        counts
    }

    /// Operations of one kind.
    pub fn of(&self, kind: SyncOperation) -> Vec<Operation> {
        self.operations().filter(|operation| operation.operation == kind as u16).copied().collect()
    }

    /// The calls that had not returned at the end of the recording.
    pub fn pending(&self) -> &[PendingOperation] {
        self.recording.facts.end.as_ref().map(|end| &*end.pending).unwrap_or_default()
    }

    /// The program's output. The program must have ended with this code.
    pub fn text(&self, code: i32) -> &str {
        assert_eq!(self.ended.code, Some(code), "{}", self.ended.stderr);
        &self.ended.stdout
    }
}
