//! Results as bytes: one output format per file, over `impl Write`.

pub mod style;
