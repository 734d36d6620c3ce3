//! The command line. Arguments ([`args`], clap) are read and checked; those of commands that record become a
//! [`crate::plan`] ([`plan_from_args`]). Then the command is run ([`run`]), which ends with one exit code.

mod args;
mod command;
mod logging;
mod plan_from_args;
mod record_args;
mod run;
mod study;
mod value;

pub use run::main;
