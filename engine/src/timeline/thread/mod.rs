//! One thread: its state, moved on by evidence, its waits, its stack of functions, its intervals.

pub(super) mod inconsistent;
pub(super) mod name;
pub(super) mod pending_wakeup;
pub(super) mod probe_time;
pub(super) mod stack;
pub(super) mod thread_tracker;
pub(super) mod wait;
pub(super) mod wait_reason;
mod write;
