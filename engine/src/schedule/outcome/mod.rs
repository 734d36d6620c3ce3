//! What a run tells: its vertices, its path, its accounts, and findings about deadlocks and contradictions.

pub(super) mod cause_tree;
#[cfg(test)]
mod cause_tree_tests;
pub(super) mod consistency;
pub(super) mod cpu_accounting;
mod deadlock;
pub(super) mod forest;
pub(super) mod result;
pub(super) mod run_path;
pub(super) mod usage;
