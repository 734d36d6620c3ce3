//! Programs and recordings generated from a seed, for tests and benchmarks. The same seed gives the same program, and a
//! recording comes with the answer that every later stage must find.

mod execution;
mod expected;
mod graph;
mod large;
mod machine;
mod operations;
mod random;
mod recording;
mod sampled;
mod sampling;
mod server;
mod sync;
mod trace_emitter;

#[cfg(test)]
pub(crate) use trace_emitter::comm;

pub use crate::numbers::Numbers;
pub use execution::Execution;
pub use expected::{Doing, Truth};
pub use graph::large_graph;
pub use large::large_program;
pub use machine::GenerateError;
pub use random::{Lengths, random_program};
pub use recording::{Generated, generate};
pub use sampled::sampled_program;
pub use sampling::sampled_recording;
pub use server::{Service, server_recording};
