//! The `longpole` command.

use std::process::ExitCode;

fn main() -> ExitCode {
    collector::cli::main(std::env::args_os())
}
