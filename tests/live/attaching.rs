//! Running programs that longpole comes to, and which of them it is.

mod answers;
mod hostile_targets;
mod libraries;
mod locks_unprobed;
mod reused_ids;
mod right_program;
mod running;
