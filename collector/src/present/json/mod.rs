//! Results as JSON.

pub(crate) mod finding;
pub(super) mod limit;
pub mod predict;
pub mod report;
pub mod requests;
