//! Everything that touches the kernel or the target: what a recording is made of, before it is ordered.
//!
//! [`probe`] is the only user of aya: kernel programs, probes, rings. [`interpose`] records a launched
//! command's locks from inside it. [`target`] is the program under study as /proc and exec see it. [`unwind`]
//! makes samples from the stacks that the kernel programs took, [`jit`] reads the names that programs publish
//! for generated code, and [`rights`] says what this process may do.

// They panic when their reader is gone.
#![cfg_attr(not(test), deny(clippy::print_stderr, clippy::print_stdout))]

mod boot_cache;
pub mod interpose;
pub mod jit;
pub mod probe;
pub mod rights;
pub mod target;
pub mod unwind;
