//! Compiling programs, recording them, and counting what they did.

use engine::event::{PendingOperation, Recording};
use probe_abi::{Operation, Record, SyncOperation};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::OnceLock;

const LONGPOLE: &str = env!("CARGO_BIN_EXE_longpole");

/// A folder with a compiled program.
pub struct Program {
    pub folder: tempfile::TempDir,
    pub path: PathBuf,
}

/// What was recorded.
pub struct Recorded {
    pub output: Output,
    pub recording: Recording,
    pub file: PathBuf,
    /// Those that are folded one by one.
    operations: Vec<Operation>,
}

/// Why nothing can be recorded here, if so. Says it.
pub fn cannot(test: &str) -> bool {
    static REASON: OnceLock<Option<String>> = OnceLock::new();
    let reason = REASON.get_or_init(|| {
        if !collector::interpose::has_library() {
            return Some("this longpole was built without the library".to_owned());
        }
        let folder = tempfile::tempdir().expect("folder");
        let file = folder.path().join("trial.lp");
        let trial = Command::new(LONGPOLE).arg("record").arg("-o").arg(file).args(["--", "true"]).output();
        let trial = trial.expect("longpole");
        let words = String::from_utf8_lossy(&trial.stderr).lines().next().unwrap_or_default().to_owned();
        match trial.status.code() {
            Some(77) => Some(words),
            Some(0) => None,
            other => panic!("{other:?}: {words}"),
        }
    });
    if let Some(reason) = reason {
        println!("SKIP {test}: {reason}");
    }
    reason.is_some()
}

/// Compiles a program; `None`, after saying why, where that or recording cannot be done.
pub fn program(test: &str, source: &str, compiler: &str, flags: &[&str]) -> Option<Program> {
    if cannot(test) {
        return None;
    }
    let folder = tempfile::tempdir().expect("folder");
    let ending = if compiler == "c++" { "cpp" } else { "c" };
    let (text, path) = (folder.path().join(format!("program.{ending}")), folder.path().join("program"));
    std::fs::write(&text, source).expect("source");
    let mut command = Command::new(compiler);
    command.args(["-g", "-O1", "-pthread", "-w"]).args(flags).arg(&text).arg("-o").arg(&path);
    match command.output() {
        Ok(output) if output.status.success() => Some(Program { folder, path }),
        Ok(output) => {
            let said = String::from_utf8_lossy(&output.stderr);
            // A compiler without a library is no fault of the program; without extra flags nothing may be missing.
            assert!(!flags.is_empty(), "{said}");
            println!("SKIP {test}: {compiler} {flags:?}: {}", said.lines().last().unwrap_or_default());
            None
        }
        Err(error) => {
            println!("SKIP {test}: no {compiler}: {error}");
            None
        }
    }
}

/// The usual C program.
pub fn c(test: &str, source: &str) -> Option<Program> {
    program(test, source, "cc", &[])
}

impl Program {
    /// `longpole record OPTIONS -- PROGRAM WORDS`, always from inside.
    pub fn record(&self, options: &[&str], words: &[&str]) -> Recorded {
        let path = self.path.to_string_lossy().into_owned();
        let command: Vec<&str> = std::iter::once(path.as_str()).chain(words.iter().copied()).collect();
        record_in(self.folder.path(), options, &command, &[])
    }
}

/// `longpole record --no-uprobes --interpose always OPTIONS -- COMMAND` with variables in the environment.
pub fn record_in(folder: &Path, options: &[&str], command: &[&str], variables: &[(&str, &str)]) -> Recorded {
    let file = folder.join("test.lp");
    let mut longpole = Command::new(LONGPOLE);
    longpole.args(["record", "--no-uprobes", "--interpose", "always", "--force"]).args(options);
    longpole.arg("-o").arg(&file).arg("--").args(command).envs(variables.iter().copied());
    let output = longpole.stdin(Stdio::null()).output().expect("longpole");
    let stderr = String::from_utf8_lossy(&output.stderr);
    let recording = match collector::session::read(&file) {
        Ok((recording, _)) => recording,
        Err(error) => panic!("{error}\n{stderr}"),
    };
    let loss = recording.facts.end.as_ref().map(|end| end.loss.lost());
    assert_eq!(loss, Some(0), "{stderr}");
    let operations = recording.events.iter().flat_map(|event| match event {
        Record::Operation(operation) => vec![*operation],
        Record::Burst(burst) => burst.unfolded().collect(),
        _ => Vec::new(),
    });
    let mut operations: Vec<Operation> = operations.collect();
    operations.sort_by_key(|operation| operation.header.time_ns);
    Recorded { output, recording, file, operations }
}

impl Recorded {
    /// All operations in order.
    pub fn operations(&self) -> impl Iterator<Item = &Operation> {
        self.operations.iter()
    }

    /// How many of each there are in a process, 0 for all.
    pub fn counts(&self, pid: u32) -> BTreeMap<SyncOperation, usize> {
        let mut counts = BTreeMap::new();
        for operation in self.operations().filter(|operation| pid == 0 || operation.header.pid == pid) {
            let name = SyncOperation::from_number(operation.operation).expect("known");
            *counts.entry(name).or_default() += 1;
        }
        counts
    }

    /// Those of one kind.
    pub fn of(&self, kind: SyncOperation) -> Vec<Operation> {
        self.operations().filter(|operation| operation.operation == kind as u16).copied().collect()
    }

    /// What had not come back at the end.
    pub fn pending(&self) -> &[PendingOperation] {
        self.recording.facts.end.as_ref().map(|end| &*end.pending).unwrap_or_default()
    }

    /// The program's output; it must have ended with this code.
    pub fn text(&self, code: i32) -> String {
        let stderr = String::from_utf8_lossy(&self.output.stderr);
        assert_eq!(self.output.status.code(), Some(code), "{stderr}");
        String::from_utf8_lossy(&self.output.stdout).into_owned()
    }
}
