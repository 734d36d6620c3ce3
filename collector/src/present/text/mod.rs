//! Results as text: a file for each output, and tables that several outputs have.

pub(super) mod cpu_costs;
pub(crate) mod delays;
pub mod doctor;
mod goroutines;
pub mod info;
mod lines;
mod lock_rows;
mod locks;
pub mod notes;
mod plot;
pub mod predict;
pub mod report;
pub mod requests;
mod segments;
pub mod view;
pub(crate) mod waits;
