//! Readers of files that anybody may have written, each as a function of bytes. `./x fuzz` calls them with bytes that libFuzzer
//! makes from the files in `corpus`; `tests/corpus.rs` calls them with these files in every test run.
//!
//! A target fails by a panic, by more than 300 MB, or by more than 5 s for an input of 100 kB. Answers are not checked here.

mod binary;
mod proc;
mod program;
mod report;
mod session;

/// A reader of untrusted bytes.
pub struct Target {
    /// The target's name, and the name of its folder in `corpus`.
    pub name: &'static str,
    /// What the bytes are.
    pub about: &'static str,
    /// Reads the bytes.
    pub run: fn(&[u8]),
}

/// All targets.
pub const TARGETS: [Target; 7] = [
    Target { name: "session", about: "a recording, only read", run: session::read },
    Target { name: "report", about: "a recording, read and analysed by each command", run: report::analyse },
    Target { name: "program", about: "a program as JSON, read and analysed", run: program::read },
    Target { name: "binary", about: "an ELF file with DWARF, unwind tables and code", run: binary::read },
    Target { name: "perf_map", about: "/tmp/perf-PID.map", run: capture::fuzzing::perf_map },
    Target { name: "jit_dump", about: "a jitdump file", run: capture::fuzzing::jit_dump },
    Target { name: "proc", about: "a text of /proc", run: proc::read },
];

/// The target with this name.
pub fn target(name: &str) -> Option<&'static Target> {
    TARGETS.iter().find(|target| target.name == name)
}
