//! longpole's build and test commands, which `./x CMD` and `cargo xtask CMD` run.

mod bench;
mod build;
mod command;
mod demo;
mod embed;
mod fuzz;
mod measure;
mod page;
mod recordings;
mod release;
mod sample;
mod soak;
mod test;
mod tidy;
mod toolchain;
mod validate;
mod view;
mod vm;
mod wait;
mod workspace;
mod zoo;

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
    /// Makes the checked-in kernel programs and preloaded library again from their sources
    Embed(embed::Options),
    /// Formatting, lints, tidy and every test; the last line is `N passed, N failed, N skipped`
    Test(test::Options),
    /// Only the tests that record running programs (needs root or CAP_BPF and CAP_PERFMON)
    LiveTest(test::Options),
    /// Formatting, lints and tests of the crates that differ from the last commit
    Check,
    /// Records a bundled program while it runs and shows what limits it
    Demo,
    /// Measures speed and overhead, updates BENCHMARKS.md
    Bench(bench::Options),
    /// Measures how long a developer waits for compilers and tests, updates BENCHMARKS.md
    Loop(wait::Options),
    /// Attaches to programs in seven languages and detaches again, 200 times each
    Soak(soak::Options),
    /// Compares predictions with real runs, updates VALIDATION.md
    Validate(validate::Options),
    /// Compares what longpole says of many programs with what is true of them, updates VALIDATION.md
    Zoo(zoo::Options),
    /// Feeds the readers of untrusted files with random bytes, guided by the code that they reach (needs a C++ compiler)
    Fuzz(fuzz::Options),
    /// Makes the small recordings again from which the documents' screens are made
    Recordings,
    /// Makes a static longpole, an archive, a .deb and a .rpm of it in target/packages
    Release(release::Options),
    /// The rules for source files that no lint knows
    Tidy,
    /// Makes the page of `longpole view` again from `view/`, or checks that it is what its sources give
    View(view::Options),
    /// Boots older and newer kernels in virtual machines, and runs live tests there (needs qemu, and apt for the kernels)
    Vm(vm::Options),
}

fn main() -> ExitCode {
    let result = match Args::parse().task {
        Task::Build => build::run(),
        Task::Embed(options) => embed::run(&options),
        Task::Test(options) => test::run(&options),
        Task::LiveTest(options) => test::live(&options),
        Task::Check => test::check(),
        Task::Demo => demo::run(),
        Task::Bench(options) => bench::run(&options),
        Task::Loop(options) => wait::run(&options),
        Task::Soak(options) => soak::run(&options),
        Task::Validate(options) => validate::run(&options),
        Task::Zoo(options) => zoo::run(&options),
        Task::Fuzz(options) => fuzz::run(&options),
        Task::Recordings => recordings::run(),
        Task::Release(options) => release::run(&options),
        Task::Tidy => tidy::run(),
        Task::View(options) => view::run(&options),
        Task::Vm(options) => vm::run(&options),
    };
    result.unwrap_or_else(|error| {
        eprintln!("xtask: {error:#}");
        ExitCode::FAILURE
    })
}
