//! The built `longpole`, run as by a user: exit codes, messages and output. No test here needs BPF or root.

mod bad_input;
mod compare_metrics;
mod parallelism;
mod predict;
mod program;
mod requests;
pub(crate) mod session;
mod usage;

use std::ffi::OsStr;
use std::io::Write;
use std::process::{Command, Stdio};

/// The result of a run of longpole.
pub(crate) struct Run {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// Runs longpole with nothing on standard input.
pub(crate) fn longpole(arguments: &[&str]) -> Run {
    longpole_with(arguments, b"")
}

/// Runs longpole with these bytes on standard input.
pub(crate) fn longpole_with(arguments: &[&str], stdin: &[u8]) -> Run {
    let mut command = Command::new(env!("CARGO_BIN_EXE_longpole"));
    command.args(arguments.iter().map(OsStr::new));
    run(command, stdin)
}

/// Runs a command in a clean environment: UTF-8, no colour, 80 columns.
pub(crate) fn run(command: Command, stdin: &[u8]) -> Run {
    run_in(command, stdin, 80)
}

/// Runs a command as on a screen of this width, in columns.
pub(crate) fn run_in(mut command: Command, stdin: &[u8], columns: usize) -> Run {
    for variable in ["LONGPOLE_LOG", "NO_COLOR", "CLICOLOR_FORCE", "COLUMNS", "LC_CTYPE", "LANG"] {
        command.env_remove(variable);
    }
    command.env("LC_ALL", "C.UTF-8").env("COLUMNS", columns.to_string());
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("longpole starts");
    let mut pipe = child.stdin.take().expect("a pipe");
    // An error means that the command does not read all of it.
    let _ = pipe.write_all(stdin);
    drop(pipe);
    let output = child.wait_with_output().expect("longpole ends");
    let text = |bytes| String::from_utf8(bytes).expect("UTF-8");
    Run {
        code: output.status.code().expect("no signal: longpole never crashes"),
        stdout: text(output.stdout),
        stderr: text(output.stderr),
    }
}

impl Run {
    /// Checks for an error: this exit code, nothing on standard output, and exactly two lines, `longpole: MESSAGE` and
    /// `hint: HINT`, which contain these words.
    #[track_caller]
    pub(crate) fn fails(&self, code: i32, message: &str, hint: &str) {
        assert_eq!(self.code, code, "{}", self.stderr);
        assert_eq!(self.stdout, "");
        let lines: Vec<&str> = self.stderr.lines().collect();
        let [first, second] = lines[..] else { panic!("two lines expected: {}", self.stderr) };
        let said = first.strip_prefix("longpole: ").unwrap_or_else(|| panic!("{first}"));
        assert!(said.contains(message), "{said:?} does not say {message:?}");
        let hinted = second.strip_prefix("hint: ").unwrap_or_else(|| panic!("{second}"));
        assert!(hinted.contains(hint), "{hinted:?} does not say {hint:?}");
    }

    /// Checks that all went well, and returns standard output.
    #[track_caller]
    pub(crate) fn works(&self) -> &str {
        assert_eq!(self.code, 0, "{}", self.stderr);
        // The remaining time is shown if the simulation is slow, as in a build without optimization.
        assert_eq!(self.stderr.lines().find(|line| !line.starts_with("simulating ")), None);
        &self.stdout
    }
}

/// The program of Fig. 4 of the 2001 paper; its unit is a microsecond.
pub(crate) const FIGURE_4: &str = r#"{"format":"longpole-program","version":1,"threads":[
    {"name":"T1","ops":[["exec","a",1000],["signal","X"],["exec","b",4000],["signal","Z"],["exec","c",1000],
        ["wait","X"],["exec","e",1000],["exec","i",1000]]},
    {"name":"T2","ops":[["wait","X"],["exec","c",1000],["signal","Y"],["exec","g",1000],["wait","Y"],
        ["exec","d",2000]]},
    {"name":"T3","ops":[["wait","Y"],["exec","d",2000],["wait","Z"],["exec","g",1000],["exec","h",1000],
        ["signal","X"],["exec","a",1000],["signal","Y"],["exec","f",3000]]}]}"#;

/// A temporary folder.
pub(crate) struct Folder(tempfile::TempDir);

impl Folder {
    pub(crate) fn new() -> Folder {
        Folder(tempfile::tempdir().expect("a folder"))
    }

    /// The path of a file in the test's folder.
    pub(crate) fn path(&self, name: &str) -> String {
        self.0.path().join(name).to_str().expect("UTF-8").to_owned()
    }

    /// Writes a file and returns its path.
    pub(crate) fn file(&self, name: &str, bytes: impl AsRef<[u8]>) -> String {
        let path = self.path(name);
        std::fs::write(&path, bytes).expect("written");
        path
    }
}
