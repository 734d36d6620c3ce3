//! What was written does not stay in memory. A large recording is exported and a smaller one, each in one thread: the largest
//! resident memory grows by what reading and simulating need, which the first byte of a table tells, and not by the file.

use crate::command_line::Folder;
use crate::command_line::session::write;
use engine::synth::{Execution, generate, large_program};
use std::io::Read;
use std::process::{Child, Command, Stdio};

/// What a run takes, bytes: the largest resident memory before the first byte of its file and before the last, and the file.
#[derive(Clone, Copy, Debug)]
struct Taken {
    first: f64,
    last: f64,
    written: f64,
}

/// How much more the large one takes.
fn growth(cpu: &str, inputs: &[String; 2], arguments: &[&str]) -> Taken {
    let [small, large] = inputs.each_ref().map(|input| taken(cpu, input, arguments));
    Taken {
        first: large.first - small.first,
        last: large.last - small.last,
        written: large.written - small.written,
    }
}

/// On one CPU nothing is simulated side by side, which takes as much memory as the threads' luck wants.
fn taken(cpu: &str, input: &str, arguments: &[&str]) -> Taken {
    let mut command = Command::new("taskset");
    command.args(["-c", cpu, env!("CARGO_BIN_EXE_longpole"), "export", input]).args(arguments);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("taskset starts");
    let mut pipe = child.stdout.take().expect("a pipe");
    let mut taken = Taken { first: 0.0, last: 0.0, written: 0.0 };
    let mut bytes = vec![0; 1 << 15];
    loop {
        // Longpole waits for its reader: all but the last bytes that fit into the pipe are read while it lives.
        let count = pipe.read(&mut bytes).expect("read");
        if count == 0 {
            break;
        }
        taken.written += count as f64;
        taken.last = taken.last.max(peak(&child));
        if taken.first == 0.0 {
            taken.first = taken.last;
        }
    }
    assert!(child.wait().expect("a child").success(), "{arguments:?}");
    assert!(taken.first > 0.0 && taken.written > 2e5, "too little to measure: {arguments:?} {taken:?}");
    taken
}

/// The largest resident memory so far; none for a process that has ended.
fn peak(child: &Child) -> f64 {
    status(&child.id().to_string(), "VmHWM:")
        .and_then(|line| line.trim_end_matches("kB").trim().parse::<f64>().ok())
        .map_or(0.0, |kib| kib * 1024.0)
}

/// What the kernel tells of a process.
fn status(process: &str, field: &str) -> Option<String> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    status.lines().find_map(|line| line.strip_prefix(field)).map(|line| line.trim().to_owned())
}

fn recorded(folder: &Folder, operations: usize) -> String {
    let program = large_program(operations, 4, 1);
    let execution = Execution { cpus: 2, operations: true, slice_ns: 20_000, ..Execution::default() };
    let path = folder.path(&format!("{operations}.lp"));
    write(&path, &generate(&program, &execution).expect("it runs").recording());
    path
}

/// Of the `amount` that it wrote more, most is no longer in memory.
fn is_gone(needed: Taken, wrote: Taken, amount: f64) -> bool {
    wrote.last - needed.first < amount / 4.0
}

#[test]
fn memory_does_not_grow_with_what_is_written() {
    let cpus = status("self", "Cpus_allowed_list:").unwrap_or_default();
    let Some(cpu) = cpus.split([',', '-']).next().filter(|cpu| !cpu.is_empty()) else {
        longpole_tests::skip!("the kernel does not tell on which CPUs this may run");
    };
    if !super::tools::has("taskset", "--version") {
        longpole_tests::skip!("there is no taskset");
    }
    let folder = Folder::new();
    let [small, large, largest] =
        [100_000, 300_000, 1_000_000].map(|operations| recorded(&folder, operations));
    // A table's first row is there when all of the recording is read. Nothing is simulated for these, so a recording can be
    // large: two runs of one command differ by up to a megabyte.
    let tables = [small.clone(), largest];
    let read = growth(cpu, &tables, &["-f", "csv", "--table", "intervals"]);
    for table in ["calls", "sections"] {
        let wrote = growth(cpu, &tables, &["-f", "ndjson", "--table", table]);
        assert!(is_gone(read, wrote, wrote.written), "{table}: {read:?} {wrote:?}");
    }
    let runs = [small, large];
    let growth = |arguments: &[&str]| growth(cpu, &runs, &[arguments, &["--whole"]].concat());
    // One run's path is what a trace needs in addition.
    let paths = growth(&["-f", "csv", "--table", "paths", "--cpus", "1"]);
    // `firefox` is made in memory, and the measurement shows that.
    for (format, goes) in [("perfetto", true), ("chrome", true), ("firefox", false)] {
        let wrote = growth(&["-f", format, "--cpus", "1"]);
        assert_eq!(is_gone(paths, wrote, wrote.written), goes, "{format}: {paths:?} {wrote:?}");
    }
    // Its file is compressed, so that the same rows as text tell how much it wrote.
    let parquet = growth(&["-f", "parquet", "--table", "paths", "--cpus", "1"]);
    assert!(is_gone(paths, parquet, paths.written), "{paths:?} {parquet:?}");
}
