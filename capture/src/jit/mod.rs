//! Code that programs make while they run (just-in-time compilers), as they name it themselves: a map (`perf-PID.map`) or
//! a dump (`jit-PID.dump`). [`JitFiles`] decides what is believed.

mod files;
mod history;
mod jit_dump;
mod perf_map;

pub use files::{JitFiles, Stamp as JitStamp, is_dump};
pub use history::JitHistory;
