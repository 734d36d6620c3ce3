//! Written bytes do not stay in memory. A large recording and a smaller one are exported, each in one thread. The largest
//! resident memory grows by what reading and simulating need, which shows at a table's first byte, not by the file's size.

use crate::command_line::Folder;
use crate::command_line::session::write;
use engine::synth::{Execution, generate, large_program};
use std::io::Read;
use std::process::{Child, Command, Stdio};

/// Bytes of a run: the largest resident memory before its file's first byte and before the last one, and the file's size.
#[derive(Clone, Copy, Debug)]
struct Taken {
    first: f64,
    last: f64,
    written: f64,
}

/// How much more the large recording takes than the small one.
fn growth(cpu: &str, inputs: &[String; 2], arguments: &[&str]) -> Taken {
    let [small, large] = inputs.each_ref().map(|input| taken(cpu, input, arguments));
    Taken {
        first: large.first - small.first,
        last: large.last - small.last,
        written: large.written - small.written,
    }
}

/// Runs an export on one CPU: several simulations at once would take an amount of memory that depends on their timing.
fn taken(cpu: &str, input: &str, arguments: &[&str]) -> Taken {
    let mut command = Command::new("taskset");
    command.args(["-c", cpu, env!("CARGO_BIN_EXE_longpole"), "export", input]).args(arguments);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("taskset starts");
    let mut pipe = child.stdout.take().expect("a pipe");
    let mut taken = Taken { first: 0.0, last: 0.0, written: 0.0 };
    let mut bytes = vec![0; 1 << 15];
    loop {
        // Longpole waits for its reader: all but the last bytes, which fit into the pipe, are read while it lives.
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

/// The largest resident memory so far, bytes; 0 for a process that has ended.
fn peak(child: &Child) -> f64 {
    status(&child.id().to_string(), "VmHWM:")
        .and_then(|line| line.trim_end_matches("kB").trim().parse::<f64>().ok())
        .map_or(0.0, |kib| kib * 1024.0)
}

/// A field of a process's status in /proc.
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

/// Whether most of the `amount` of additional output is no longer in memory.
fn is_gone(needed: Taken, wrote: Taken, amount: f64) -> bool {
    wrote.last - needed.first < amount / 4.0
}

#[test]
fn memory_of_an_export_does_not_grow_with_the_output() {
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
    // A table's first row is written when the whole recording is read. These tables need no simulation, so the recording
    // can be large: two runs of one command differ by up to a megabyte.
    let tables = [small.clone(), largest];
    let read = growth(cpu, &tables, &["-f", "csv", "--table", "intervals"]);
    for table in ["calls", "sections"] {
        let wrote = growth(cpu, &tables, &["-f", "ndjson", "--table", table]);
        assert!(is_gone(read, wrote, wrote.written), "{table}: {read:?} {wrote:?}");
    }
    let runs = [small, large];
    let growth = |arguments: &[&str]| growth(cpu, &runs, &[arguments, &["--whole"]].concat());
    // A trace needs one run's path in addition.
    let paths = growth(&["-f", "csv", "--table", "paths", "--cpus", "1"]);
    // `firefox` is built in memory: the measurement has to show that.
    for (format, goes) in [("perfetto", true), ("chrome", true), ("firefox", false)] {
        let wrote = growth(&["-f", format, "--cpus", "1"]);
        assert_eq!(is_gone(paths, wrote, wrote.written), goes, "{format}: {paths:?} {wrote:?}");
    }
    // Parquet is compressed: the same rows as text show how much was written.
    let parquet = growth(&["-f", "parquet", "--table", "paths", "--cpus", "1"]);
    assert!(is_gone(paths, parquet, paths.written), "{paths:?} {parquet:?}");
}
