//! Adds names to a finished recording, for functions and calls whose place is known but whose name or line is not. The
//! names come from debug information on this machine, in given folders, or (only if requested) on debuginfod servers.

mod code_facts;
mod debuginfod;
mod find;
mod names;

pub use code_facts::{code_of, name_code, unnamed};
pub use debuginfod::{Client, FetchError, Progress, Settings};
pub use names::{Outcome, symbolize};
