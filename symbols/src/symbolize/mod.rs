//! Names for a recording after it was made, for functions and calls whose place is known but not their name
//! or line. It uses the debug information that there is here, in folders, or (only if asked for) on
//! debuginfod servers.

mod code_facts;
mod debuginfod;
mod find;
mod names;

pub use code_facts::{code_of, name_code, unnamed};
pub use debuginfod::{Client, FetchError, Progress, Settings};
pub use names::{Outcome, symbolize};
