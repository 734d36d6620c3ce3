//! Records a workload by probes on its C library, and describes its calls in words.

pub use crate::locks::support::{LIMIT, Program, Recorded, program};

use longpole_tests::{Background, Ended, Longpole};
use object::{Object as _, ObjectSymbol as _, SymbolKind};
use probe_abi::{Operation, Record, SyncOperation};
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::Path;
use std::process::Command;

pub const OPERATIONS: &str = include_str!("../../../workloads/operations.c");

/// Reads a recording. Bursts become single operations, as probes record them.
pub fn read(file: &Path, ended: Ended) -> Recorded {
    let mut recorded = Recorded::read(file, ended);
    let events = std::mem::take(&mut recorded.recording.events).into_iter();
    recorded.recording.events = events
        .flat_map(|event| match event {
            Record::Burst(burst) => burst.each_operation().map(Record::Operation).collect(),
            other => vec![other],
        })
        .collect();
    recorded.recording.events.sort_by_key(|event| event.header().time_ns);
    recorded
}

impl Program {
    /// Runs `longpole record OPTIONS -- PROGRAM WORDS`.
    pub fn launched(&self, options: &[&str], words: &[&str]) -> Recorded {
        self.launched_with(options, words, &[])
    }

    /// Like [`Program::launched`], with additional environment variables.
    pub fn launched_with(&self, options: &[&str], words: &[&str], variables: &[(&str, &OsStr)]) -> Recorded {
        let file = self.folder.path().join("launched.lp");
        let mut call = Longpole::with(["record", "--force"]);
        call.command().arg("--exact").args(with_rate(options)).envs(variables.iter().copied());
        call.command().arg("-o").arg(&file).arg("--").arg(&self.path).args(words);
        read(&file, call.ok())
    }

    /// Starts the program, waits until it prints that it is ready, and attaches longpole before the program continues.
    pub fn attached(&self, options: &[&str]) -> Recorded {
        let file = self.folder.path().join("attached.lp");
        let mut target = self.gated();
        let mut longpole = attach(target.pid(), &with_rate(options), &file).start();
        longpole.wait_for_stderr("recording ", LIMIT).expect("a recording");
        target.say("").expect("it waits");
        let ended = longpole.wait(LIMIT).expect("an end");
        assert_eq!(ended.code, Some(0), "{}", ended.stderr);
        read(&file, ended)
    }

    /// Starts the program, and waits until it prints that it is ready.
    pub fn gated(&self) -> Background {
        let mut target = Background::must_start(Command::new(&self.path).arg("gate"));
        assert_eq!(target.line(LIMIT).expect("a line"), "up");
        target
    }
}

/// The call `longpole record OPTIONS -p PID`, with probes on all functions at once and on the C library.
pub fn attach(pid: u32, options: &[&str], file: &Path) -> Longpole {
    let mut call = Longpole::with(["record", "--force", "--exact", "--functions", "*"]);
    call.command().args(["-p", &pid.to_string(), "-o"]);
    call.command().arg(file).args(options);
    call
}

/// Adds the options that keep all operations of a test, unless the test sets a rate.
fn with_rate<'a>(options: &[&'a str]) -> Vec<&'a str> {
    let mut all = options.to_vec();
    if !options.contains(&"--max-rate") {
        all.extend(["--max-rate", "1000000", "--overhead", "none"]);
    }
    all
}

/// Lets the target run to its end, which must have code 0. Returns the output after `up`.
pub fn ends_well(mut target: Background) -> String {
    target.say("").expect("it waits");
    let ended = target.wait(LIMIT).expect("an end");
    assert_eq!((ended.code, ended.signal), (Some(0), None), "{}{}", ended.stdout, ended.stderr);
    ended.stdout.strip_prefix("up\n").unwrap_or_default().to_owned()
}

/// Start, size and name of a program's functions and variables. Right only for programs that are loaded at the
/// addresses for which they were linked.
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

    /// The address as `name+offset`, or `-` for addresses outside the program.
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

/// For each thread, the calls that functions of the program made, in order. Threads are in the order of their start.
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

/// Describes a call; `None` if a library made it.
fn describe(operation: &Operation, names: &Names) -> Option<String> {
    let caller = names.function(operation.caller);
    if caller == "-" {
        return None;
    }
    let kind = SyncOperation::from_number(operation.operation).expect("known");
    // glibc has the same code for both functions.
    let kind = if kind == SyncOperation::SpinInit { SyncOperation::SpinUnlock } else { kind };
    let waits = matches!(kind, SyncOperation::ConditionWait | SyncOperation::ConditionTimedWait);
    let counts = matches!(kind, SyncOperation::BarrierInit | SyncOperation::SemaphoreInit);
    let second = match operation.second {
        mutex if waits => names.at(mutex),
        count if counts => count.to_string(),
        _ => String::new(),
    };
    // Which thread becomes the serial thread of a barrier differs from run to run.
    let outcome = if kind == SyncOperation::BarrierWait { 0 } else { operation.outcome };
    let object = names.at(operation.object);
    Some(format!("{caller}: {} {object} {second} = {outcome}", kind.name()))
}

/// Number of calls of one kind.
pub fn number(counts: &BTreeMap<SyncOperation, usize>, operation: SyncOperation) -> usize {
    counts.get(&operation).copied().unwrap_or(0)
}

/// Number of calls for each object, sorted.
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
