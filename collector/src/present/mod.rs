//! Results as bytes: one output format per file, over `impl Write`.

pub mod cell;
pub mod doctor;
pub mod info;
pub mod json;
mod lock_rows;
mod locks;
mod overhead;
mod passing;
mod plot;
pub mod predict;
pub mod predict_json;
mod samples;
mod segments;
pub mod study;
pub mod style;
mod table;
pub mod text;
pub mod validate;
mod waits;

pub use overhead::overhead;
pub use samples::samples;
