//! The command line: arguments ([`args`], clap) are [`check`]ed into a [`crate::plan`], the plan is [`run`], and there is
//! one exit code.

mod args;
mod check;
mod command;
mod logging;
mod run;
mod study;
mod value;

pub use run::main;
