//! Makes samples of the stacks that the kernel programs took: frames, numbers of stacks, and the mappings of code.

mod address_space;
mod binaries;
mod callers;
mod changed_words;
mod copies;
mod depth;
mod interner;
mod leaf;
mod pending_stacks;
mod process;
mod reader;
mod sampler;
mod shared_lines;
mod told;
mod vdso;

pub use binaries::BinaryTables;
pub use copies::{Unwinding, Unwound};
pub use interner::{Interned, Interner};
pub use sampler::Sampler;
