//! The command line: arguments ([`args`], clap) are [`check`]ed into a [`plan`], the plan is [`run`], and there is
//! one exit code.

mod args;
mod check;
mod command;
mod error;
mod input;
mod logging;
mod outcome;
pub mod plan;
mod run;
mod say;
mod study;
mod value;

pub(crate) use command::limit_line;
pub use error::{Code, UserError};
pub(crate) use input::Input;
pub use outcome::Outcome;
pub use run::main;
pub use say::say;
