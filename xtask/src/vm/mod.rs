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

/// Tests that together use every way of recording. The list is short, and no test in it expects a number of samples,
/// because emulated machines are slow.
const CHOSEN: [&str; 22] = [
    "launching::command::record_exits_with_the_command_s_exit_code",
    "attaching::running::threads_born_after_attaching_are_recorded",
    "attaching::running::threads_that_exist_when_longpole_attaches_are_recorded",
    "kernel::sched::every_futex_wake_up_is_recorded_once_with_its_word",
    "kernel::sched::switches_chain_on_each_cpu_and_have_the_sleeper_s_stack_pointer",
    "kernel::sched::wake_ups_by_network_and_signals_are_not_those_of_a_thread",
    "kernel::function::calls_are_counted_exactly_at_every_kind_of_exit",
    "kernel::function::exceptions_pass_through_probed_frames",
    "kernel::lifecycle::child_processes_are_recorded_with_children_only",
    "kernel::lifecycle::a_child_gets_probes_of_its_own_and_a_gap_before_them",
    "kernel::detach::code_is_unchanged_after_a_capture",
    "kernel::detach::a_killed_capture_leaves_no_breakpoint",
    "locks::launched::counts::every_libc_operation_is_recorded_exactly_as_often_as_called",
    "locks::libc::same_operations::probes_and_the_preloaded_library_record_the_same_operations",
    "loss::exact_counts::calls_of_all_threads_in_fork_and_join_are_counted_exactly",
    "loss::rings::every_lost_record_lies_in_a_gap",
    "waits::every_wake_up_of_a_futex_is_an_edge_and_names_its_word",
    "waits::every_wake_up_through_a_descriptor_is_an_edge_from_its_waker",
    "waits::a_packet_over_loopback_is_an_edge_from_its_sender",
    "screen::top_batch_prints_one_json_object_per_line",
    "watching::top_once_prints_json_or_text_without_a_terminal",
    "harm::unusual_exits::a_cpp_program_that_throws_and_catches_ends_as_alone_with_probes",
];

/// Boots each kernel, runs the tests, and prints the table. If `LONGPOLE_BIN` is set, it names the longpole binary to
/// use.
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

/// The path without symbolic links. The path must be visible in a machine, which has its own folders for temporary
/// files.
fn visible(path: &Path) -> Result<PathBuf> {
    let path = path.canonicalize().with_context(|| path.display().to_string())?;
    if ["/tmp", "/run", "/dev"].iter().any(|folder| path.starts_with(folder)) {
        bail!("a virtual machine does not see {}: it has a folder of its own there", path.display());
    }
    Ok(path)
}

/// Builds the program with the live tests. cargo's messages contain its path.
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

/// Names of the tests to run.
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
