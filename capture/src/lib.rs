//! Everything that touches the kernel or the target: the sources of a recording, before its records are ordered.
//!
//! [`probe`] is the only user of aya: kernel programs, probes, rings. [`interpose`] records a launched
//! command's locks from inside it. [`target`] is the program under study as /proc and exec see it. [`unwind`]
//! makes samples from the stacks that the kernel programs took, [`jit`] reads the names that programs publish
//! for generated code, and [`rights`] says what this process may do.

// Printing panics when the output has no reader any more.
#![cfg_attr(not(test), deny(clippy::print_stderr, clippy::print_stdout))]

mod boot_cache;
#[cfg(feature = "fuzzing")]
pub mod fuzzing;
pub mod goroutines;
pub mod interpose;
pub mod jit;
pub mod probe;
pub mod rights;
pub mod target;
pub mod thread_contexts;
pub mod unwind;
