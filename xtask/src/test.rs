//! `./x test`: formatting, lints, tidy and every test of the workspace, counted in one line at the end.

use std::path::PathBuf;
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

use anyhow::Result;

use crate::command;
use crate::ebpf::{self, Object};
use crate::preload;
use crate::score::Score;
use crate::tidy;
use crate::workspace::Workspace;

/// No test binary takes this long; one that does hangs.
const BINARY_LIMIT: Duration = Duration::from_secs(900);
pub const COMPILE_LIMIT: Duration = Duration::from_secs(2400);

/// What to run.
#[derive(clap::Args)]
pub struct Options {
    /// Only test binaries whose name contains this, without formatting and lints
    #[arg(value_name = "NAME")]
    only: Option<String>,
    /// Only tests whose path contains this (passed on to the test binaries)
    #[arg(long, value_name = "TEST")]
    test: Option<String>,
}

impl Options {
    /// The tests that record running programs.
    pub fn live() -> Self {
        Self { only: Some("live".into()), test: None }
    }
}

/// Runs everything; the last line printed is `N passed, N failed, N skipped`.
///
/// # Errors
/// Only what keeps the tests from being run at all; a failed test is counted, not an error.
pub fn run(options: &Options) -> Result<ExitCode> {
    let workspace = Workspace::find();
    let mut score = Score::default();
    let (object, ebpf_tools) = kernel_programs(&workspace, &mut score);
    let library = preloaded_library(&workspace, &mut score);
    if options.only.is_none() {
        score.check("tidy", || Ok(tidy::check(&workspace)));
        score.command("fmt", command::cargo(&workspace).args(["fmt", "--all", "--check"]));
        let mut clippy = command::cargo(&workspace);
        clippy.args([
            "clippy",
            "--quiet",
            "--workspace",
            "--all-targets",
            "--locked",
            "--",
            "-D",
            "warnings",
        ]);
        object.pass_to(&mut clippy);
        preload::pass_to(&library, &mut clippy);
        score.command("clippy", &mut clippy);
        if let Some(tools) = &ebpf_tools {
            let mut fmt = command::cargo(&workspace);
            score.command("fmt probe-ebpf", fmt.current_dir(workspace.ebpf_crate()).args(["fmt", "--check"]));
            let mut clippy = ebpf::cargo(&workspace, tools, "clippy");
            score.command("clippy probe-ebpf", clippy.args(["--quiet", "--", "-D", "warnings"]));
        }
    }
    test_binaries(&workspace, &object, &library, options, &mut score);
    Ok(score.finish())
}

fn kernel_programs(workspace: &Workspace, score: &mut Score) -> (Object, Option<ebpf::Tools>) {
    let name = "kernel programs";
    let unavailable = |reason: String| (Object::Unavailable(reason), None);
    let start = Instant::now();
    match ebpf::provide(workspace) {
        Ok(object @ Object::Built(_)) => {
            score.pass(name, start);
            let tools = ebpf::tools(workspace).ok().and_then(|tools| tools.ok());
            (object, tools)
        }
        Ok(Object::Unavailable(reason)) => {
            score.skip(name, &reason);
            unavailable(reason)
        }
        Err(error) => {
            score.fail(name, &format!("{error:#}"));
            unavailable("they do not compile".into())
        }
    }
}

fn preloaded_library(workspace: &Workspace, score: &mut Score) -> std::result::Result<PathBuf, String> {
    let name = "preloaded library";
    let start = Instant::now();
    match preload::provide(workspace) {
        Ok(Ok(library)) => {
            score.pass(name, start);
            Ok(library)
        }
        Ok(Err(reason)) => {
            score.skip(name, &reason);
            Err(reason)
        }
        Err(error) => {
            score.fail(name, &format!("{error:#}"));
            Err("it does not compile".into())
        }
    }
}

fn test_binaries(
    workspace: &Workspace,
    object: &Object,
    library: &std::result::Result<PathBuf, String>,
    options: &Options,
    score: &mut Score,
) {
    let start = Instant::now();
    let built = match Built::compile(workspace, object, library) {
        Ok(built) => built,
        Err(error) => return score.fail("compile", &format!("{error:#}")),
    };
    if built.broken {
        score.fail("compile", "see above");
    } else {
        score.pass("compile", start);
    }
    for binary in &built.binaries {
        if options.only.as_ref().is_some_and(|only| !binary.name.contains(only)) {
            continue;
        }
        let mut command = built.command(binary, object);
        let failed = score.tests(&binary.name, command.args(&options.test), BINARY_LIMIT);
        match binary.is_live() {
            true => score.tests_again(&binary.name, failed, BINARY_LIMIT, || built.command(binary, object)),
            false => score.tests_failed(&binary.name, failed),
        }
    }
    if options.only.is_none() {
        let mut documentation = command::cargo(workspace);
        documentation.args(["test", "--quiet", "--workspace", "--doc", "--locked", "--no-fail-fast"]);
        object.pass_to(&mut documentation);
        preload::pass_to(library, &mut documentation);
        let failed = score.tests("documentation examples", &mut documentation, COMPILE_LIMIT);
        score.tests_failed("documentation examples", failed);
    }
}

/// Everything cargo built for the tests.
struct Built {
    binaries: Vec<Binary>,
    longpole: Option<PathBuf>,
    /// Some of it did not compile; the compiler's messages have been shown.
    broken: bool,
}

struct Binary {
    name: String,
    path: PathBuf,
    folder: PathBuf,
}

impl Binary {
    fn is_live(&self) -> bool {
        self.name.contains("live")
    }
}

impl Built {
    /// A test binary with what it is told about the others.
    fn command(&self, binary: &Binary, object: &Object) -> Command {
        let mut command = Command::new(&binary.path);
        command.current_dir(&binary.folder).env("CARGO_MANIFEST_DIR", &binary.folder);
        command.arg("--show-output");
        if binary.is_live() {
            // They share the machine with the programs they record.
            command.arg("--test-threads=1");
        }
        if let Some(longpole) = &self.longpole {
            command.env("LONGPOLE_BIN", longpole).env("CARGO_BIN_EXE_longpole", longpole);
        }
        match object {
            Object::Built(path) => command.env("LONGPOLE_EBPF_OBJECT", path),
            Object::Unavailable(reason) => command.env("LONGPOLE_REPLAY_ONLY", reason),
        };
        command
    }

    /// One cargo call for programs, tests and examples alike, so that nothing is compiled in two ways.
    fn compile(
        workspace: &Workspace,
        object: &Object,
        library: &std::result::Result<PathBuf, String>,
    ) -> Result<Self> {
        let mut build = command::cargo(workspace);
        build.args(["build", "--quiet", "--workspace", "--all-targets", "--locked", "--keep-going"]);
        build.args(["--message-format", "json-render-diagnostics"]);
        object.pass_to(&mut build);
        preload::pass_to(library, &mut build);
        let outcome = command::capture(&mut build, COMPILE_LIMIT)?;
        let mut built = Self { binaries: Vec::new(), longpole: None, broken: !outcome.success() };
        for line in outcome.output.lines() {
            match serde_json::from_str::<serde_json::Value>(line) {
                Ok(message) => drop(built.artifact(&message)),
                Err(_) if built.broken => println!("{line}"),
                Err(_) => {}
            }
        }
        // Fast ones first; those that record running programs last, when nothing else runs.
        built.binaries.sort_by_key(|binary| (binary.is_live(), binary.name.clone()));
        Ok(built)
    }

    fn artifact(&mut self, message: &serde_json::Value) -> Option<()> {
        let path = PathBuf::from(message.get("executable")?.as_str()?);
        let target = message.get("target")?;
        let name = target.get("name")?.as_str()?;
        let kind = target.get("kind")?.get(0)?.as_str()?;
        let folder = PathBuf::from(message.get("manifest_path")?.as_str()?).parent()?.to_path_buf();
        if message.get("profile")?.get("test")?.as_bool()? {
            let package = folder.file_name()?.to_str()?.to_owned();
            self.binaries.push(Binary { name: format!("{package} {kind} {name}"), path, folder });
        } else if kind == "bin" && name == "longpole" {
            self.longpole = Some(path);
        }
        Some(())
    }
}
