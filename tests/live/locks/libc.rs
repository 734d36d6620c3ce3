//! Probes on the synchronization functions of real C libraries record what the library inside records, call by call.

mod exit_points;
mod lifecycle;
mod processes;
mod same_operations;
mod support;
