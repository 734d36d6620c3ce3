//! Results as bytes: one output format per file, over `impl Write`.

pub mod frame;
pub mod json;
pub mod screen;
pub(crate) mod source;
pub mod study;
pub mod style;
pub(crate) mod table;
pub mod text;
pub mod words;

pub use words::overhead::{cost, overhead};
pub use words::sample_note::samples;
