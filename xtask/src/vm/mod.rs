//! `./x vm`: boots Debian's kernels in virtual machines, runs live tests there, and prints which pass on which kernel.

mod guest;
mod initramfs;
mod machine;
mod modules;
mod packages;
mod runs;
mod table;

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::build;
use crate::command;
use crate::workspace::Workspace;
use guest::{Job, Programs};
use packages::SERIES;
use runs::Runner;

/// Which kernels and tests.
#[derive(clap::Args)]
pub struct Options {
    /// Only these: 6.1, 6.12 or newest
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    kernel: Vec<String>,
    /// Only tests whose names contain this text
    #[arg(long, value_name = "TEXT", value_delimiter = ',')]
    test: Vec<String>,
    /// All live tests, not only those that together use every feature: hours where there is no KVM
    #[arg(long, conflicts_with = "test")]
    all: bool,
    /// Hide the kernel's type information, as if the kernel were built without it
    #[arg(long)]
    no_btf: bool,
    /// Run this shell command instead of tests, and show its output
    #[arg(long, value_name = "COMMAND", conflicts_with_all = ["test", "all"])]
    run: Option<String>,
    /// Look for newer kernels than those in the cache
    #[arg(long)]
    update: bool,
    /// A program with the live tests, instead of building it
    #[arg(long, value_name = "FILE")]
    live_tests: Option<PathBuf>,
}

/// Tests that together record in every way: few, and none that expects a number of samples, because emulated machines are slow.
const CHOSEN: [&str; 22] = [
    "launching::command::the_exit_code_is_passed_on",
    "attaching::running::a_running_program_with_threads_born_later",
    "attaching::running::threads_that_are_there_at_attach_are_known",
    "kernel::sched::every_futex_wake_is_recorded_once",
    "kernel::sched::switches_chain_and_tell_the_stack_pointer",
    "kernel::sched::network_and_signals_are_told_from_threads",
    "kernel::function::calls_are_counted_exactly",
    "kernel::function::exceptions_pass_through_probed_frames",
    "kernel::lifecycle::child_processes_are_recorded_if_asked_for",
    "kernel::lifecycle::a_child_gets_its_own_probes",
    "kernel::detach::code_is_as_before_after_a_capture",
    "kernel::detach::a_killed_capture_leaves_nothing",
    "locks::launched::counts::every_operation_is_there_exactly_as_often_as_it_was_called",
    "locks::libc::same_operations::probes_and_the_library_inside_record_the_same_calls",
    "loss::exact_counts::calls_in_all_threads_of_fork_and_join",
    "loss::rings::every_lost_record_lies_in_a_gap",
    "waits::every_wake_of_a_futex_is_an_edge_and_names_its_word",
    "waits::every_wake_through_a_descriptor_is_an_edge_from_its_waker",
    "waits::a_packet_over_the_loopback_device_is_its_senders_doing",
    "screen::a_batch_is_one_json_object_after_the_other",
    "watching::once_gives_json_and_text_without_a_terminal",
    "harm::unusual_exits::cpp_throw_and_catch",
];

/// Boots each kernel, runs the tests, and prints the table. `LONGPOLE_BIN` names a longpole to be used instead of a new one.
///
/// # Errors
/// Something does not compile, there is no qemu, or a kernel does not start.
pub fn run(options: &Options) -> Result<ExitCode> {
    let workspace = Workspace::find();
    if let Some(name) = options.kernel.iter().find(|name| SERIES.iter().all(|one| one.name != **name)) {
        let names: Vec<&str> = SERIES.iter().map(|one| one.name).collect();
        bail!("there is no kernel {name}: {}", names.join(", "));
    }
    let longpole = match std::env::var_os("LONGPOLE_BIN") {
        Some(path) => PathBuf::from(path),
        None => build::release(&workspace)?,
    };
    let tests = match &options.live_tests {
        Some(path) => path.clone(),
        None => live_tests(&workspace)?,
    };
    let (longpole, tests) = (visible(&longpole)?, visible(&tests)?);
    let workloads = workspace.target.join("workloads");
    let cache = workspace.target.join("vm");
    let names = chosen(options, &tests)?;
    let job = match &options.run {
        Some(command) => Job::Command(command),
        None => Job::Tests(&names),
    };
    let mut runner = Runner {
        programs: Programs { longpole: &longpole, tests: &tests, workloads: &workloads },
        has_btf: !options.no_btf,
        folder: cache.join("machine"),
        accelerator: None,
    };
    let mut all = Vec::new();
    for series in &SERIES {
        if options.kernel.is_empty() || options.kernel.iter().any(|name| name == series.name) {
            let kernel = series.provide(&cache, options.update)?;
            all.push(runner.run(&kernel, &job)?);
        }
    }
    if options.run.is_none() {
        println!("{}", table::of(&all, &names));
    }
    Ok(if all.iter().any(table::has_failed) { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// The path without links; it must be one that a machine sees, which has folders of its own for temporary files.
fn visible(path: &Path) -> Result<PathBuf> {
    let path = path.canonicalize().with_context(|| path.display().to_string())?;
    if ["/tmp", "/run", "/dev"].iter().any(|folder| path.starts_with(folder)) {
        bail!("a virtual machine does not see {}: it has a folder of its own there", path.display());
    }
    Ok(path)
}

/// Builds the program with the live tests; its path is in cargo's messages.
fn live_tests(workspace: &Workspace) -> Result<PathBuf> {
    let mut build = command::cargo(workspace);
    build.args(["test", "--no-run", "--locked", "--package", "longpole-tests", "--test", "live"]);
    build.args(["--message-format", "json-render-diagnostics"]);
    let messages = command::text(&mut build)?;
    messages
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok())
        .find_map(|message| message.get("executable")?.as_str().map(PathBuf::from))
        .context("cargo names no program with the live tests")
}

/// Names of the tests to be run.
fn chosen(options: &Options, tests: &Path) -> Result<Vec<String>> {
    let said = command::text(Command::new(tests).arg("--list"))?;
    let names = said.lines().filter_map(|line| line.strip_suffix(": test"));
    let is_wanted = |name: &String| {
        if options.test.is_empty() {
            options.all || CHOSEN.contains(&name.as_str()) || guest::checks().any(|check| check == *name)
        } else {
            options.test.iter().any(|text| name.contains(text.as_str()))
        }
    };
    let names: Vec<String> = names.map(str::to_owned).chain(guest::checks()).filter(is_wanted).collect();
    if names.is_empty() && options.run.is_none() {
        bail!("no live test has such a name");
    }
    Ok(names)
}
