//! The results of `slack`, `parallelism`, `compare-metrics`, `paths`, `what-if`, `diff` and `check`: text and JSON, one file each.

pub mod check;
pub mod diff;
mod diff_requests;
mod json;
mod listing;
pub mod metrics;
pub mod parallelism;
pub mod paths;
pub mod paths_json;
pub mod slack;
pub mod what_if;
