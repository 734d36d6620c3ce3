//! Finds the longpole binary under test, and runs it.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::time::Duration;

use crate::process::{self, Background, Ended};
use crate::report::{Program, Report};

/// A call of longpole that takes longer than this fails the test.
const LIMIT: Duration = Duration::from_secs(180);

static BINARY: OnceLock<PathBuf> = OnceLock::new();

/// Chooses the binary for all later calls. Returns `false` if it has been chosen already.
pub fn take_binary(path: PathBuf) -> bool {
    BINARY.set(path).is_ok()
}

/// The binary under test: the one given to `take_binary`, else that of `LONGPOLE_BIN`, else the one that cargo built
/// for the collector's own tests. If there is none of them, it is built now.
pub fn binary() -> &'static Path {
    BINARY.get_or_init(|| {
        let named = ["LONGPOLE_BIN", "CARGO_BIN_EXE_longpole", "NEXTEST_BIN_EXE_longpole"]
            .into_iter()
            .find_map(std::env::var_os);
        match named {
            Some(path) => PathBuf::from(path),
            None => build().unwrap_or_else(|why| panic!("cannot build longpole: {why}")),
        }
    })
}

fn build() -> Result<PathBuf, String> {
    let mut cargo = Command::new("cargo");
    cargo.current_dir(env!("CARGO_MANIFEST_DIR"));
    cargo.args(["build", "--quiet", "--release", "--package", "collector", "--bin", "longpole"]);
    cargo.args(["--message-format", "json-render-diagnostics"]);
    let ended = process::run(&mut cargo, Duration::from_secs(2400)).map_err(|error| error.to_string())?;
    ended
        .stdout
        .lines()
        .filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok())
        .filter_map(|message| message.get("executable")?.as_str().map(PathBuf::from))
        .next_back()
        .ok_or(ended.stderr)
}

/// One call of longpole.
pub struct Longpole {
    command: Command,
}

impl Longpole {
    /// A call with these arguments, in an environment that does not influence the answer.
    pub fn with<I: IntoIterator<Item = S>, S: AsRef<OsStr>>(arguments: I) -> Self {
        let mut command = Command::new(binary());
        command.args(arguments).env("NO_COLOR", "1").env_remove("LONGPOLE_LOG").env_remove("SUDO_UID");
        Self { command }
    }

    /// Adds one more argument.
    pub fn and(mut self, argument: impl AsRef<OsStr>) -> Self {
        self.command.arg(argument);
        self
    }

    /// The command itself, for further changes.
    pub fn command(&mut self) -> &mut Command {
        &mut self.command
    }

    /// Runs longpole to its end.
    pub fn run(mut self) -> Ended {
        process::run(&mut self.command, LIMIT).unwrap_or_else(|error| panic!("{:?}: {error}", self.command))
    }

    /// Runs longpole to its end, which must have exit code 0.
    pub fn ok(self) -> Ended {
        self.code(0)
    }

    /// Runs longpole to its end, which must have this exit code.
    pub fn code(self, code: i32) -> Ended {
        let shown = format!("{:?}", self.command);
        let ended = self.run();
        assert_eq!(ended.code, Some(code), "{shown}\n{}\n{}", ended.stdout, ended.stderr);
        ended
    }

    /// Runs longpole to its end, which must have this exit code. Standard error must have an error line that contains
    /// `message`, a line with a hint, and no panic.
    pub fn fails(self, code: i32, message: &str) -> Ended {
        let shown = format!("{:?}", self.command);
        let ended = self.code(code);
        let said = &ended.stderr;
        assert!(!said.contains("panicked"), "{shown}\n{said}");
        let error = said.lines().find(|line| line.starts_with("longpole: ")).unwrap_or_default();
        assert!(error.contains(message), "{shown}\nno '{message}' in: {said}");
        assert!(said.lines().any(|line| line.starts_with("hint: ")), "{shown}\nno hint in: {said}");
        ended
    }

    /// Starts longpole in the background.
    pub fn start(mut self) -> Background {
        Background::start(&mut self.command).unwrap_or_else(|error| panic!("{:?}: {error}", self.command))
    }

    /// `longpole report --json` of a recording or a program.
    pub fn report(file: &Path, cpus: &str) -> Report {
        let ended = Self::with(["report", "--json", "--cpus", cpus]).and(file).ok();
        Report::parse(&ended.stdout)
    }

    /// The cost of recording and its parts on one line, as `longpole report --wide` prints them.
    pub fn told_cost(file: &Path) -> String {
        let text = Self::with(["report", "--wide"]).and(file).ok().stdout;
        let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
        let (_, cost) = words.split_once("Cost: ").unwrap_or_else(|| panic!("no cost in {text}"));
        cost.to_owned()
    }

    /// `longpole export --format program` of a recording.
    pub fn export(file: &Path) -> Program {
        let ended = Self::with(["export", "--format", "program"]).and(file).ok();
        Program::parse(&ended.stdout)
    }
}
