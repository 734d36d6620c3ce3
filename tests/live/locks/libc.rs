//! Probes on the synchronization functions of real C libraries must record the same calls as the preloaded library.

mod exit_points;
mod lifecycle;
mod processes;
mod same_operations;
mod support;
