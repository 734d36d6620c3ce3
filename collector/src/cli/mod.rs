//! The command line: arguments ([`args`], clap) are read and checked, those of commands that record become a
//! [`crate::plan`] ([`plan_from_args`]), the command is [`run`], and there is one exit code.

mod args;
mod command;
mod logging;
mod plan_from_args;
mod record_args;
mod run;
mod study;
mod value;

pub use run::main;
