//! Finds a C library's synchronization functions, and the places of probes in them.

mod answer;
mod functions;
mod names;

pub use functions::{CodePlace, ErrnoPlace, LibcCall, LibcFunctions, libc_functions};

pub(crate) use answer::LibcAnswer;
pub(crate) use functions::functions_in;
