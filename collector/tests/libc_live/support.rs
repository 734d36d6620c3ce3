//! Building the workload with each C library, recording it in each way, and reading its calls as people would write them.

use engine::event::Recording;
use object::{Object as _, ObjectSymbol as _, SymbolKind};
use probe_abi::{Operation, Record, SyncOperation};
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

pub const LONGPOLE: &str = env!("CARGO_BIN_EXE_longpole");
pub const OPERATIONS: &str = include_str!("../../../tests/workloads/operations.c");

static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// Waits for its turn; `None`, after saying why, where nothing can be recorded.
pub fn live(test: &str) -> Option<MutexGuard<'static, ()>> {
    static REASON: OnceLock<Option<String>> = OnceLock::new();
    let turn = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let reason = REASON.get_or_init(|| {
        let folder = tempfile::tempdir().expect("folder");
        let trial = Command::new(LONGPOLE)
            .arg("record")
            .arg("-o")
            .arg(folder.path().join("trial.lp"))
            .args(["--", "true"])
            .output()
            .expect("longpole");
        let words = String::from_utf8_lossy(&trial.stderr).lines().next().unwrap_or_default().to_owned();
        match trial.status.code() {
            Some(77) => Some(words),
            Some(0) => None,
            other => panic!("{other:?}: {words}"),
        }
    });
    match reason {
        Some(reason) => {
            println!("SKIP {test}: {reason}");
            None
        }
        None => Some(turn),
    }
}

/// A compiled program.
pub struct Program {
    pub folder: tempfile::TempDir,
    pub path: PathBuf,
}

/// Compiles; `None`, after saying why, where this compiler or its library is missing.
pub fn build(test: &str, source: &str, compiler: &str, flags: &[&str]) -> Option<Program> {
    let folder = tempfile::tempdir().expect("folder");
    let (text, path) = (folder.path().join("operations.c"), folder.path().join("operations"));
    std::fs::write(&text, source).expect("source");
    let mut command = Command::new(compiler);
    command.args(["-g", "-O1", "-pthread", "-w"]).arg(&text).args(flags).arg("-o").arg(&path);
    match command.output() {
        Ok(output) if output.status.success() => Some(Program { folder, path }),
        Ok(output) => {
            let said = String::from_utf8_lossy(&output.stderr);
            assert!(!matches!(compiler, "cc" | "c++") || flags.contains(&"-static"), "{said}");
            println!("SKIP {test}: {compiler} {flags:?}: {}", said.lines().last().unwrap_or_default());
            None
        }
        Err(error) => {
            println!("SKIP {test}: no {compiler}: {error}");
            None
        }
    }
}

/// A recording and what longpole said.
pub struct Recorded {
    pub recording: Recording,
    pub said: String,
    pub file: PathBuf,
}

pub fn read(file: &Path, said: String) -> Recorded {
    let (mut recording, _) = collector::session::read(file).unwrap_or_else(|error| panic!("{error}\n{said}"));
    recording.events = one_by_one(std::mem::take(&mut recording.events));
    let lost = recording.facts.end.as_ref().map(|end| end.loss.lost());
    assert_eq!(lost, Some(0), "{said}");
    Recorded { recording, said, file: file.to_owned() }
}

/// What the library has folded is what probes record: the operations themselves.
fn one_by_one(events: Vec<Record>) -> Vec<Record> {
    let mut all: Vec<Record> = events
        .into_iter()
        .flat_map(|event| match event {
            Record::Burst(burst) => burst.unfolded().map(Record::Operation).collect(),
            other => vec![other],
        })
        .collect();
    all.sort_by_key(|event| event.header().time_ns);
    all
}

impl Program {
    /// `longpole record OPTIONS -- PROGRAM WORDS`
    pub fn launched(&self, options: &[&str], words: &[&str]) -> Recorded {
        self.launched_with(options, words, &[])
    }

    /// As [`Program::launched`], with variables in its environment.
    pub fn launched_with(&self, options: &[&str], words: &[&str], variables: &[(&str, &OsStr)]) -> Recorded {
        let file = self.folder.path().join("launched.lp");
        let output = Command::new(LONGPOLE)
            .args(["record", "--force"])
            .args(with_rate(options))
            .envs(variables.iter().copied())
            .arg("-o")
            .arg(&file)
            .arg("--")
            .arg(&self.path)
            .args(words)
            .output()
            .expect("longpole");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(0), "{said}");
        read(&file, said)
    }

    /// Starts it, waits until it says so, and has longpole attached before it is told to go on.
    pub fn attached(&self, options: &[&str]) -> Recorded {
        let file = self.folder.path().join("attached.lp");
        let mut target = self.gated();
        let mut longpole = Command::new(LONGPOLE)
            .args(["record", "--force", "--functions", "*", "-p", &target.0.id().to_string()])
            .args(with_rate(options))
            .arg("-o")
            .arg(&file)
            .stderr(Stdio::piped())
            .spawn()
            .expect("longpole");
        let mut said = until_recording(&mut longpole);
        target.go();
        let mut rest = longpole.stderr.take().expect("piped");
        std::io::Read::read_to_string(&mut rest, &mut said).expect("read");
        assert_eq!(longpole.wait().expect("ended").code(), Some(0), "{said}");
        read(&file, said)
    }

    /// Starts it, and waits until it says that it is up.
    pub fn gated(&self) -> Target {
        let mut child = Command::new(&self.path)
            .arg("gate")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the workload");
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().expect("piped")).read_line(&mut line).expect("read");
        assert_eq!(line, "up\n");
        Target(child)
    }
}

/// As many as the test makes are to be recorded, unless it says otherwise.
fn with_rate<'a>(options: &[&'a str]) -> Vec<&'a str> {
    let mut all = options.to_vec();
    if !options.contains(&"--max-rate") {
        all.extend(["--max-rate", "1000000", "--overhead", "none"]);
    }
    all
}

/// What longpole says until it records.
pub fn until_recording(longpole: &mut Child) -> String {
    let mut said = String::new();
    let stderr = longpole.stderr.as_mut().expect("piped");
    // Byte by byte: what follows is somebody else's to read.
    while !said.lines().any(|line| line.starts_with("recording ")) || !said.ends_with('\n') {
        let mut byte = [0];
        if std::io::Read::read(stderr, &mut byte).expect("read") == 0 {
            break;
        }
        said.push(char::from(byte[0]));
    }
    said
}

/// A running workload; it ends with this.
pub struct Target(pub Child);

impl Target {
    pub fn go(&mut self) {
        self.0.stdin.as_mut().expect("piped").write_all(b"\n").expect("told");
    }

    /// Waits until it ends with this code; what it said.
    pub fn ends(&mut self, code: i32) -> String {
        let mut said = String::new();
        let stdout = self.0.stdout.as_mut().expect("piped");
        std::io::Read::read_to_string(stdout, &mut said).expect("read");
        assert_eq!(self.0.wait().expect("ended").code(), Some(code), "{said}");
        said
    }
}

impl Drop for Target {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Names of a program's functions and variables by address; for programs that lie where they were linked to.
pub struct Names(Vec<(u64, u64, String)>);

impl Names {
    pub fn of(program: &Path) -> Names {
        let bytes = std::fs::read(program).expect("program");
        let file = object::File::parse(&*bytes).expect("ELF");
        let mut names: Vec<(u64, u64, String)> = file
            .symbols()
            .filter(|symbol| {
                matches!(symbol.kind(), SymbolKind::Text | SymbolKind::Data) && symbol.size() > 0
            })
            .map(|symbol| (symbol.address(), symbol.size(), symbol.name().unwrap_or_default().to_owned()))
            .collect();
        names.sort();
        Names(names)
    }

    /// `name+offset`, or `-` for what is none of the program's.
    fn at(&self, address: u64) -> String {
        let inside = |(start, size, _): &&(u64, u64, String)| (*start..start + size).contains(&address);
        self.0.iter().find(inside).map_or("-".to_owned(), |(start, _, name)| match address - start {
            0 => name.clone(),
            offset => format!("{name}+{offset}"),
        })
    }

    fn function(&self, address: u64) -> String {
        let name = self.at(address.wrapping_sub(1));
        name.split('+').next().unwrap_or_default().to_owned()
    }
}

/// Each thread's calls from functions of the program, in order; threads in the order of their births.
pub fn calls(recorded: &Recorded, names: &Names) -> Vec<Vec<String>> {
    let mut threads: Vec<u32> = Vec::new();
    let mut lists: BTreeMap<u32, Vec<String>> = BTreeMap::new();
    for event in &recorded.recording.events {
        match event {
            Record::Fork(fork) => threads.push(fork.child_tid),
            Record::Operation(operation) => {
                if !threads.contains(&operation.header.tid) {
                    threads.insert(0, operation.header.tid);
                }
                let text = describe(operation, names);
                lists.entry(operation.header.tid).or_default().extend(text);
            }
            _ => {}
        }
    }
    threads.iter().map(|tid| lists.remove(tid).unwrap_or_default()).collect()
}

/// A call in words; `None` if a library made it.
fn describe(operation: &Operation, names: &Names) -> Option<String> {
    let caller = names.function(operation.caller);
    if caller == "-" {
        return None;
    }
    let kind = SyncOperation::from_number(operation.operation).expect("known");
    // glibc has one code for both.
    let kind = if kind == SyncOperation::SpinInit { SyncOperation::SpinUnlock } else { kind };
    let waits = matches!(kind, SyncOperation::ConditionWait | SyncOperation::ConditionTimedWait);
    let counts = matches!(kind, SyncOperation::BarrierInit | SyncOperation::SemaphoreInit);
    let second = match operation.second {
        mutex if waits => names.at(mutex),
        count if counts => count.to_string(),
        _ => String::new(),
    };
    // One of two gets the serial thread's outcome.
    let outcome = if kind == SyncOperation::BarrierWait { 0 } else { operation.outcome };
    let object = names.at(operation.object);
    Some(format!("{caller}: {} {object} {second} = {outcome}", kind.name()))
}

/// How many of each operation a process has, 0 for all.
pub fn counts(recorded: &Recorded, pid: u32) -> BTreeMap<SyncOperation, usize> {
    let mut counts = BTreeMap::new();
    for event in &recorded.recording.events {
        if let Record::Operation(operation) = event
            && (pid == 0 || operation.header.pid == pid)
        {
            *counts.entry(SyncOperation::from_number(operation.operation).expect("known")).or_default() += 1;
        }
    }
    counts
}

pub fn number(counts: &BTreeMap<SyncOperation, usize>, operation: SyncOperation) -> usize {
    counts.get(&operation).copied().unwrap_or(0)
}

/// How many calls each object has, in order.
pub fn by_object(recorded: &Recorded, kind: SyncOperation) -> Vec<usize> {
    let mut objects: BTreeMap<u64, usize> = BTreeMap::new();
    for event in &recorded.recording.events {
        if let Record::Operation(operation) = event
            && operation.operation == kind as u16
        {
            *objects.entry(operation.object).or_default() += 1;
        }
    }
    let mut counts: Vec<usize> = objects.into_values().collect();
    counts.sort_unstable();
    counts
}
