//! Starting a command, held at a gate until it is watched, and ending as it has ended.

mod account;
mod at_start;
pub(super) mod command;
pub mod gate;
pub(super) mod launch;
pub mod limits;
pub mod signals;
pub(super) mod usage;
