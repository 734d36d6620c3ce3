//! What the kernel programs took of stacks becomes samples: frames, numbered stacks, and where code was mapped.

mod copies;
mod depth;
mod interner;
mod sampler;
mod space;

pub use copies::{Binaries, Unwinding, Unwound};
pub use interner::{Interned, Interner};
pub use sampler::Sampler;
