//! Programs and recordings made from a number, for tests and benchmarks: the same number gives the same program.

mod large;
mod numbers;
mod random;

pub use large::large_program;
pub use numbers::Numbers;
pub use random::{Lengths, random_program};
