//! Makes samples of the stacks that the kernel programs took: frames, numbers of stacks, and the mappings of code.

mod address_space;
mod binaries;
mod callers;
mod changed_words;
mod depth;
mod interner;
mod leaf;
mod pending_stacks;
mod process;
mod reader;
mod sampler;
mod shared_lines;
mod told;
mod unwinding;
mod vdso;

pub use binaries::BinaryTables;
pub use interner::{Interned, Interner};
pub use sampler::Sampler;
pub use unwinding::{Unwinding, Unwound};
