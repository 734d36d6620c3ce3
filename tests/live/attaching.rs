//! Attaching to running programs, and choosing which.

mod answers;
mod deadlock;
mod hostile_targets;
mod libraries;
mod locks_unprobed;
mod reused_ids;
mod right_program;
mod running;
