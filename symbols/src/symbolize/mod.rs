//! Names for a recording after it was made: functions and calls of which it knows the place but not the name or line, with
//! whatever debug information there is here, in folders, or (only if asked for) on debuginfod servers.

mod code;
mod debuginfod;
mod find;
mod names;

pub use code::{code_of, name_code, unnamed};
pub use debuginfod::{Client, FetchError, Progress, Settings};
pub use names::{Outcome, symbolize};
