//! `./x loop` measures how long a developer waits: from a changed line to the result of a test, and from a clone to the
//! end of the complete test run.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::command;
use crate::page::{self, Page};
use crate::sample::Sample;
use crate::test;
use crate::workspace::Workspace;

/// What to measure.
#[derive(clap::Args)]
pub struct Options {
    /// The whole test run, too: cold (with nothing built, tools included) and warm; some twenty minutes
    #[arg(long)]
    whole: bool,
}

/// The folders: a file in which a line changes, and the tests that give the first answer.
const CHANGES: [(&str, &str, &[&str]); 4] = [
    ("present", "collector/src/present/text/report.rs", &["-p", "collector", "--lib", "present::"]),
    ("capture", "capture/src/probe/overhead/controller.rs", &["-p", "capture", "--lib", "probe::"]),
    ("symbols", "symbols/src/code/exits.rs", &["-p", "symbols", "--lib", "exits"]),
    ("engine", "engine/src/timeline/builder.rs", &["-p", "engine", "timeline::"]),
];
const RUNS: usize = 3;

/// Measures and updates BENCHMARKS.md.
///
/// # Errors
/// Something does not compile, a test fails, or the page cannot be written.
pub fn run(options: &Options) -> Result<ExitCode> {
    let workspace = Workspace::find();
    let mut page = Page::read(&workspace, &page::BENCHMARKS)?;
    let mut text = String::from(
        "## What a developer waits for\n\nSeconds on two CPUs, registry downloaded. One line changed: until the tests of that folder have \
         answered, middle of 3.\n\n| | s |\n|---|---|\n",
    );
    let (seconds, packages) = release(&workspace)?;
    writeln!(text, "| `cargo build --release`, nothing built before ({packages} crates) | {seconds:.0} |")?;
    for (name, file, tests) in CHANGES {
        let times = change(&workspace, &workspace.root.join(file), tests).with_context(|| name.to_owned())?;
        writeln!(text, "| one line in {name} → its tests | {times:.0} |")?;
    }
    page.put("loop", &text)?;
    if options.whole {
        page.put("loop-whole", &whole(&workspace)?)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Seconds of a release build into an empty target folder, and the number of crates that it compiles.
fn release(workspace: &Workspace) -> Result<(f64, usize)> {
    let folder = fresh(workspace)?;
    let mut build = command::cargo(workspace);
    build.args(["build", "--release", "--locked", "--target-dir"]).arg(&folder);
    let start = Instant::now();
    let output = build.stdin(Stdio::null()).output()?;
    let seconds = start.elapsed().as_secs_f64();
    let said = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() {
        bail!("the release build fails:\n{said}");
    }
    std::fs::remove_dir_all(&folder)?;
    Ok((seconds, said.lines().filter(|line| line.trim_start().starts_with("Compiling ")).count()))
}

/// Seconds from a changed line to the result of these tests.
fn change(workspace: &Workspace, file: &Path, tests: &[&str]) -> Result<Sample> {
    let runner = test::runner(workspace)?;
    let mut nextest = Command::new(runner);
    nextest.current_dir(&workspace.root).args(["nextest", "run", "--locked"]).args(tests);
    let before = Restored { path: file, text: std::fs::read_to_string(file)? };
    command::must(&mut nextest, "the tests before the change")?;
    let mut times = Sample::default();
    // The changed line follows the file's own comment, so that all code moves, as in most changes.
    let (head, rest) = before.text.split_once("\n\n").context("a file without a blank line")?;
    for run in 0..RUNS {
        std::fs::write(file, format!("{head}\n\n// Changed {run}.\n{}{rest}", "\n".repeat(run)))?;
        let start = Instant::now();
        command::must(&mut nextest, "the tests behind the change")?;
        times.push(start.elapsed().as_secs_f64());
    }
    Ok(times)
}

/// A file that gets its old text back when this value is dropped.
struct Restored<'a> {
    path: &'a Path,
    text: String,
}

impl Drop for Restored<'_> {
    fn drop(&mut self) {
        if let Err(error) = std::fs::write(self.path, &self.text) {
            eprintln!("xtask: {} is left changed: {error}", self.path.display());
        }
    }
}

/// Runs `./x test` with nothing built, and then again.
fn whole(workspace: &Workspace) -> Result<String> {
    let mut text = String::from(
        "## The whole test run\n\nSeconds on two CPUs, registry downloaded.\n\n| | s |\n|---|---|\n",
    );
    let folder = fresh(workspace)?;
    for name in ["cold, tools built", "warm"] {
        let mut call = Command::new(std::env::current_exe()?);
        call.current_dir(&workspace.root).arg("test").env("CARGO_TARGET_DIR", &folder);
        test::forget_last_run(workspace)?;
        let start = Instant::now();
        let status = call.status()?;
        let seconds = start.elapsed().as_secs_f64();
        let ended = if status.success() { "" } else { " (not all passed)" };
        writeln!(text, "| `./x test`, {name}{ended} | {seconds:.0} |")?;
    }
    let tests = test::last_run(workspace)?;
    let mut programs = BTreeMap::<&str, (f64, usize)>::new();
    for test in &tests {
        let sum = programs.entry(test.name.split(' ').next().unwrap_or_default()).or_default();
        *sum = (sum.0 + test.seconds, sum.1 + 1);
    }
    let compiled = compile_times(workspace, &folder)?;
    text.push_str(
        "\nEach test program: compiled and linked while another one is, then its tests one after the other.\n\n",
    );
    text.push_str("| program | compiled, s | tests | run, s |\n|---|---|---|---|\n");
    for (program, (seconds, count)) in programs {
        let compiled = compiled.get(program).map_or("–".into(), |seconds| format!("{seconds:.0}"));
        writeln!(text, "| {program} | {compiled} | {count} | {seconds:.0} |")?;
    }
    let mut slowest: Vec<_> = tests.iter().collect();
    slowest.sort_by(|one, other| other.seconds.total_cmp(&one.seconds));
    text.push_str("\nThe ten longest tests:\n\n| test | s |\n|---|---|\n");
    slowest.iter().take(10).try_for_each(|test| writeln!(text, "| {} | {:.0} |", test.name, test.seconds))?;
    std::fs::remove_dir_all(&folder)?;
    Ok(text)
}

/// Compile time of each test program in seconds, by the name that the test runner uses. The times come from cargo's
/// timing report, a page that contains JSON.
fn compile_times(workspace: &Workspace, folder: &Path) -> Result<BTreeMap<String, f64>> {
    let mut touched = Vec::new();
    for file in ["probe-abi/src/lib.rs", "probe-preload/src/lib.rs", "tests/src/lib.rs", "xtask/src/main.rs"]
    {
        touched.push(workspace.root.join(file));
    }
    command::must(Command::new("touch").args(&touched), "touch")?;
    let mut build = command::cargo(workspace);
    build.args([
        "build",
        "--locked",
        "--workspace",
        "--exclude",
        "probe-ebpf",
        "--lib",
        "--bins",
        "--tests",
        "--timings",
    ]);
    command::must(build.env("CARGO_TARGET_DIR", folder), "building the tests")?;
    let page = std::fs::read_to_string(folder.join("cargo-timings/cargo-timing.html"))?;
    let data = page.split("UNIT_DATA = ").nth(1).and_then(|rest| rest.split(";\n").next());
    let units: Vec<Value> = serde_json::from_str(data.context("cargo's timings hold no data")?)?;
    let mut times = BTreeMap::new();
    for unit in &units {
        let (Some(name), Some(target)) = (unit["name"].as_str(), unit["target"].as_str()) else { continue };
        // An entry has a form such as `live "test" (test)`.
        let words: Vec<&str> = target.split_whitespace().collect();
        let program = match words[..] {
            [test, "\"test\"", "(test)"] => format!("{name}::{test}"),
            [_, "\"bin\"", "(test)"] => format!("{name}::bin/{name}"),
            [_, "\"lib\"", "(test)"] => name.to_owned(),
            _ => continue,
        };
        times.insert(program, unit["duration"].as_f64().unwrap_or(0.0));
    }
    Ok(times)
}

fn fresh(workspace: &Workspace) -> Result<std::path::PathBuf> {
    let folder = workspace.target.join("loop");
    if folder.exists() {
        std::fs::remove_dir_all(&folder)?;
    }
    Ok(folder)
}
