//! Tests that attach to running programs, or that choose a program.

mod answers;
mod deadlock;
mod hostile_targets;
mod libraries;
mod locks_unprobed;
mod reused_ids;
mod right_program;
mod running;
