//! Results as bytes: one output format per file, over `impl Write`.

mod counts;
mod cpu_costs;
pub(crate) mod cpu_words;
pub(crate) mod deadlock;
pub(crate) mod delays;
pub mod doctor;
pub mod edit_words;
pub(crate) mod excerpt;
pub mod finding;
pub(crate) mod finding_json;
pub mod frame;
pub mod info;
pub mod json;
mod limit_json;
mod lines;
mod lock_rows;
mod locks;
pub mod notes;
mod overhead;
mod plot;
pub mod predict;
pub mod predict_json;
mod requests;
mod sample_note;
pub mod screen;
mod segments;
pub(crate) mod short;
pub(crate) mod source;
pub mod study;
pub mod style;
pub(crate) mod table;
pub mod text;
pub mod view;
mod waits;

pub use overhead::{cost, overhead};
pub use sample_note::samples;
