//! Parsers of untrusted files as functions of bytes, for the crate `fuzz`. Compiled only with the feature `fuzzing`.

pub use crate::jit::fuzzing::{jit_dump, perf_map};
pub use crate::target::fuzzing::{proc_bytes, proc_text};
