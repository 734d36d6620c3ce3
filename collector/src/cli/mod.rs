//! The command line: arguments ([`args`], clap) become a checked [`crate::plan`] ([`plan_from_args`]), the plan is
//! [`run`], and there is one exit code.

mod args;
mod command;
mod logging;
mod plan_from_args;
mod run;
mod study;
mod value;

pub use run::main;
