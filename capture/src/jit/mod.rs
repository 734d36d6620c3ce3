//! Names of code that programs generate at run time (just-in-time compilers). Programs publish these names in a map
//! (`perf-PID.map`) or a dump (`jit-PID.dump`). [`JitFiles`] decides which files are trusted.

mod files;
#[cfg(feature = "fuzzing")]
pub mod fuzzing;
mod history;
mod jit_dump;
mod perf_map;

pub use files::{JitFiles, Stamp as JitStamp, is_dump};
pub use history::JitHistory;
