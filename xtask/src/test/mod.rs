//! `./x test`, `./x live-test`, `./x check`: run formatting, lints, tidy, and the tests with cargo-nextest
//! (`.config/nextest.toml`).

mod changed;
mod dependencies;
mod junit;
mod runner;
mod score;

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::{Command, ExitCode};
use std::time::Instant;

use anyhow::{Context, Result};

pub use runner::provide as runner;
use score::Score;

use crate::command;
use crate::embed;
use crate::tidy;
use crate::view;
use crate::workspace::Workspace;

/// Name of the check of embedded files.
const EMBEDDED: &str = "embedded objects are what their sources give";
/// Name of the check of the page of `longpole view`.
const PAGE: &str = "the page is what its sources give";
/// All crates except the kernel programs, which cannot be compiled for a host.
const HOST: [&str; 3] = ["--workspace", "--exclude", "probe-ebpf"];

/// What to run.
#[derive(clap::Args)]
pub struct Options {
    /// Passed on to `cargo nextest run` (`-p engine`, a part of a test's path …); then neither lints nor the proof of what is
    /// embedded
    #[arg(value_name = "NEXTEST", trailing_var_arg = true, allow_hyphen_values = true)]
    nextest: Vec<OsString>,
}

/// Runs `./x test`: everything, or the tests that the user names. The last line printed is `N passed, N failed, N
/// skipped`.
///
/// # Errors
/// Something prevents the tests from running at all. A failed test is counted, and is no error.
pub fn run(options: &Options) -> Result<ExitCode> {
    let workspace = Workspace::find();
    let mut score = Score::default();
    if !options.nextest.is_empty() {
        tests(&workspace, &options.nextest, false, &mut score);
        return Ok(score.finish());
    }
    match score.unless_broken(EMBEDDED, embed::compare(&workspace)) {
        Some(Ok(complaints)) => score.complaints(EMBEDDED, complaints),
        Some(Err(reason)) => score.skip(EMBEDDED, &reason),
        None => {}
    }
    match score.unless_broken(PAGE, view::compare(&workspace)) {
        Some(Ok(complaints)) => score.complaints(PAGE, complaints),
        Some(Err(reason)) => score.skip(PAGE, &reason),
        None => {}
    }
    lint(&workspace, &HOST.map(OsString::from), true, &mut score);
    without_features(&workspace, &mut score);
    let everything: Vec<OsString> =
        HOST.iter().chain(&["--lib", "--bins", "--tests"]).map(OsString::from).collect();
    let start = Instant::now();
    // All crates are built by one call, so that cargo compiles nothing twice.
    let mut build = command::cargo(&workspace);
    build.args(["build", "--quiet", "--locked"]).args(&everything);
    if score.command("compile", &mut build) && score.command("compile longpole", &mut longpole(&workspace)) {
        println!("compiled in {:.0} s", start.elapsed().as_secs_f64());
        tests(&workspace, &everything, true, &mut score);
    }
    Ok(score.finish())
}

/// Runs `./x live-test`: the tests that record running programs, with a binary of the current sources.
///
/// # Errors
/// Those of [`run`].
pub fn live(options: &Options) -> Result<ExitCode> {
    let workspace = Workspace::find();
    let mut score = Score::default();
    up_to_date(&workspace, &mut score);
    if score.command("compile longpole", &mut longpole(&workspace)) {
        let mut words: Vec<OsString> =
            ["--package", "longpole-tests", "--test", "live"].map(OsString::from).into();
        words.extend(options.nextest.iter().cloned());
        tests(&workspace, &words, true, &mut score);
    }
    Ok(score.finish())
}

/// Runs `./x check`: formatting, lints and tests of the crates that differ from the last commit. Live tests are only
/// compiled.
///
/// # Errors
/// Those of [`run`], or an error of git.
pub fn check() -> Result<ExitCode> {
    let workspace = Workspace::find();
    let mut score = Score::default();
    up_to_date(&workspace, &mut score);
    let concerned = changed::crates(&workspace)?;
    println!(
        "changed: {}",
        if concerned.tested.is_empty() { "no crate".into() } else { concerned.tested.join(", ") }
    );
    let select = |crates: &[&str]| {
        crates.iter().flat_map(|name| ["--package".into(), (*name).into()]).collect::<Vec<_>>()
    };
    lint(&workspace, &select(&concerned.linted), concerned.kernel_programs, &mut score);
    if concerned.tested.contains(&"collector") {
        without_features(&workspace, &mut score);
    }
    dependencies::check(&workspace, &mut score);
    if !concerned.tested.is_empty() {
        let mut words = select(&concerned.tested);
        words.extend(["-E", "not binary(live)"].map(OsString::from));
        tests(&workspace, &words, false, &mut score);
    }
    Ok(score.finish())
}

/// Builds the binary for tests of running programs. This binary is the one that users get, because tests measure what
/// recording costs.
fn longpole(workspace: &Workspace) -> Command {
    let mut build = command::cargo(workspace);
    build.args(["build", "--quiet", "--locked", "--release", "--package", "collector", "--bin", "longpole"]);
    build
}

/// Makes the embedded files again if their sources have changed. Counts a failure if that is impossible.
fn up_to_date(workspace: &Workspace, score: &mut Score) {
    if let Some(Err(reason)) = score.unless_broken(EMBEDDED, embed::bring_up_to_date(workspace)) {
        score.fail(EMBEDDED, &reason);
    }
}

/// Runs tidy, the formatter, and clippy for the crates that these words select.
fn lint(workspace: &Workspace, selected: &[OsString], kernel_programs: bool, score: &mut Score) {
    score.complaints("tidy", tidy::check(workspace));
    score.command("fmt", command::cargo(workspace).args(["fmt", "--all", "--check"]));
    if !selected.is_empty() {
        let mut clippy = command::cargo(workspace);
        clippy
            .args(["clippy", "--quiet", "--locked", "--all-targets"])
            .args(selected)
            .args(["--", "-D", "warnings"]);
        score.command("clippy", &mut clippy);
    }
    if kernel_programs {
        let name = "clippy probe-ebpf";
        match score.unless_broken(name, embed::lints(workspace)) {
            Some(Ok(mut clippy)) => drop(score.command(name, &mut clippy)),
            Some(Err(reason)) => score.skip(name, &reason),
            None => {}
        }
    }
}

/// Checks that longpole compiles without its features.
fn without_features(workspace: &Workspace, score: &mut Score) {
    let mut clippy = command::cargo(workspace);
    clippy.args(["clippy", "--quiet", "--locked", "--package", "collector", "--bin", "longpole"]).args([
        "--no-default-features",
        "--",
        "-D",
        "warnings",
    ]);
    score.command("longpole without its features", &mut clippy);
}

/// Runs `cargo nextest run` with these words, and counts the results. If longpole is not built yet, the first test that
/// needs it builds it.
fn tests(workspace: &Workspace, words: &[OsString], longpole_is_built: bool, score: &mut Score) {
    let outcome = nextest(workspace, words, longpole_is_built);
    if let Some((tests, ended_well)) = score.unless_broken("the test runner itself", outcome) {
        score.tests(&tests, ended_well);
    }
}

fn nextest(
    workspace: &Workspace,
    words: &[OsString],
    longpole_is_built: bool,
) -> Result<(Vec<junit::Test>, bool)> {
    let runner = runner(workspace)?;
    forget_last_run(workspace)?;
    let mut nextest = Command::new(runner);
    nextest.current_dir(&workspace.root).args(["nextest", "run", "--locked"]).args(words);
    if longpole_is_built {
        nextest.env("LONGPOLE_BIN", workspace.target.join("release/longpole"));
    }
    let status = nextest.status().context("cannot start cargo-nextest")?;
    let tests = last_run(workspace).with_context(|| format!("cargo-nextest ended with {status}"))?;
    Ok((tests, status.success()))
}

/// Removes the report of an earlier run, so that it does not count for this run.
///
/// # Errors
/// The report cannot be removed.
pub fn forget_last_run(workspace: &Workspace) -> Result<()> {
    let report = report(workspace);
    match std::fs::remove_file(&report) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(error).with_context(|| format!("cannot remove {}", report.display()))
        }
        _ => Ok(()),
    }
}

/// Reads the tests of the last run.
///
/// # Errors
/// There was no run.
pub fn last_run(workspace: &Workspace) -> Result<Vec<junit::Test>> {
    let report = report(workspace);
    junit::read(&std::fs::read_to_string(&report).with_context(|| report.display().to_string())?)
}

/// The path of the file into which nextest writes its report.
fn report(workspace: &Workspace) -> PathBuf {
    workspace.root.join("target/nextest/default/junit.xml")
}
