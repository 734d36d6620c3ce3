//! `./x fuzz`: feeds the readers of untrusted files with random bytes. The crate `fuzz` has the targets. libFuzzer
//! makes the bytes, guided by the branches that they reach. `cargo fuzz` would need a nightly compiler; here, four
//! options of the stable compiler do the same.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, ExitCode};

use anyhow::{Context, Result, ensure};

use crate::command;
use crate::workspace::Workspace;

/// Compiler options: each edge between blocks gets a counter, and each comparison is reported, so that libFuzzer finds
/// values byte by byte.
const INSTRUMENTED: [&str; 6] = [
    "-Cpasses=sancov-module",
    "-Cllvm-args=-sanitizer-coverage-level=4",
    "-Cllvm-args=-sanitizer-coverage-inline-8bit-counters",
    "-Cllvm-args=-sanitizer-coverage-pc-table",
    "-Cllvm-args=-sanitizer-coverage-trace-compares",
    "-Cdebug-assertions",
];

/// The host, given as the target. With a target, cargo does not instrument build scripts and macros.
const HOST: &str = "x86_64-unknown-linux-gnu";

/// Limits for one input: size in bytes, seconds, and memory in MB.
const LIMITS: [&str; 3] = ["-max_len=100000", "-timeout=5", "-rss_limit_mb=300"];

/// What to feed, and how long.
#[derive(clap::Args)]
pub struct Options {
    /// Targets, each a folder of fuzz/corpus [default: all]
    targets: Vec<String>,
    /// Seconds for each target
    #[arg(long, value_name = "S", default_value = "60")]
    seconds: u64,
    /// Inputs for each target, in place of a time
    #[arg(long, value_name = "N", conflicts_with = "seconds")]
    runs: Option<u64>,
    /// Adds inputs that reach more code to fuzz/corpus, and no others
    #[arg(long)]
    keep: bool,
}

/// Feeds each target, and says which targets failed.
///
/// # Errors
/// The targets cannot be built, or a given name is no target.
pub fn run(options: &Options) -> Result<ExitCode> {
    let workspace = Workspace::find();
    let seeds = workspace.root.join("fuzz/corpus");
    let targets = if options.targets.is_empty() { folders(&seeds)? } else { options.targets.clone() };
    for target in &targets {
        ensure!(seeds.join(target).is_dir(), "{target} is no target: {}", folders(&seeds)?.join(", "));
    }
    let fuzzer = build(&workspace)?;
    let mut failed = Vec::new();
    for target in &targets {
        let work = workspace.target.join("fuzz").join(target);
        let found = work.join("corpus");
        fs::create_dir_all(&found).with_context(|| format!("cannot make {}", found.display()))?;
        let mut feed = Command::new(&fuzzer);
        feed.env("LONGPOLE_FUZZ", target).args(LIMITS);
        feed.arg(format!("-artifact_prefix={}/", work.display()));
        if options.keep {
            feed.arg("-merge=1").args([seeds.join(target), found]);
        } else {
            match options.runs {
                Some(runs) => feed.arg(format!("-runs={runs}")),
                None => feed.arg(format!("-max_total_time={}", options.seconds)),
            };
            feed.arg("-print_final_stats=1").args([found, seeds.join(target)]);
        }
        println!("fuzz: {target}");
        if !feed.status().context("cannot start the fuzzer")?.success() {
            failed.push(format!("{target}: see {}", work.display()));
        }
    }
    failed.iter().for_each(|failure| println!("fuzz: FAILED {failure}"));
    println!("{} passed, {} failed", targets.len() - failed.len(), failed.len());
    Ok(if failed.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The names of the folders in a folder, sorted.
fn folders(of: &PathBuf) -> Result<Vec<String>> {
    let entries = fs::read_dir(of).with_context(|| format!("cannot list {}", of.display()))?;
    let mut names: Vec<String> = entries
        .filter_map(Result::ok)
        .filter(|entry| entry.path().is_dir())
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    Ok(names)
}

/// Builds the targets with libFuzzer in a folder of their own. Returns the path of the program.
fn build(workspace: &Workspace) -> Result<PathBuf> {
    let folder = workspace.target.join("fuzz/build");
    let mut build = command::cargo(workspace);
    build.args(["build", "--locked", "--release", "--package", "fuzz", "--features", "libfuzzer"]);
    build.args(["--target", HOST, "--target-dir"]).arg(&folder);
    build.env("CARGO_ENCODED_RUSTFLAGS", INSTRUMENTED.join("\x1f"));
    ensure!(build.status().context("cargo")?.success(), "the targets cannot be built");
    Ok(folder.join(HOST).join("release/fuzz"))
}
