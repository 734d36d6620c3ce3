//! `longpole parallelism`: a screen, one row alone, and JSON.

pub mod json;
mod notice;
pub mod row;
pub mod screen;
pub(crate) mod table;
mod words;
