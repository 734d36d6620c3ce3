//! longpole's build and test commands; `./x CMD` and `cargo xtask CMD` end up here.

mod bench;
mod build;
mod command;
mod demo;
mod ebpf;
mod libtest;
mod linker;
mod page;
mod preload;
mod sample;
mod score;
mod soak;
mod stolen;
mod test;
mod tidy;
mod toolchain;
mod validate;
mod workspace;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Build, test, demonstrate and measure longpole.
#[derive(Parser)]
#[command(name = "x", bin_name = "./x")]
struct Args {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Builds target/release/longpole with the kernel programs inside
    Build,
    /// Builds only the kernel programs: target/ebpf/probe-ebpf.o
    Ebpf,
    /// Builds only the library that is put before libc of launched programs: target/preload/longpole-preload.so
    Preload,
    /// Formatting, lints, tidy and every test; the last line is `N passed, N failed, N skipped`
    Test(test::Options),
    /// Only the tests that record running programs (needs root or CAP_BPF and CAP_PERFMON)
    LiveTest,
    /// Records a bundled program while it runs and shows what limits it
    Demo,
    /// Measures speed and overhead, updates BENCHMARKS.md
    Bench(bench::Options),
    /// Attaches to programs in seven languages and detaches again, 200 times each
    Soak(soak::Options),
    /// Compares predictions with real runs, updates VALIDATION.md
    Validate(validate::Options),
    /// The rules for source files that no lint knows
    Tidy,
}

fn main() -> ExitCode {
    let result = match Args::parse().task {
        Task::Build => build::run(),
        Task::Ebpf => ebpf::run(),
        Task::Preload => preload::run(),
        Task::Test(options) => test::run(&options),
        Task::LiveTest => test::run(&test::Options::live()),
        Task::Demo => demo::run(),
        Task::Bench(options) => bench::run(&options),
        Task::Soak(options) => soak::run(&options),
        Task::Validate(options) => validate::run(&options),
        Task::Tidy => tidy::run(),
    };
    result.unwrap_or_else(|error| {
        eprintln!("xtask: {error:#}");
        ExitCode::FAILURE
    })
}
