//! Experiments: a program with changes, run on the model of a machine, each run made once.
//!
//! What limits a program, what a change gains and what a person asks with `what-if` are one question: the time without
//! something. So there is one list of changes ([`Edit`]), one place that makes them ([`apply`]), and one store of their runs
//! ([`Trials`]).

mod apply;
mod band;
mod cpu_costs;
mod divide;
mod edit;
mod even;
mod fewer_threads;
mod free;
mod group_commit;
mod hosts_cpus;
mod more_sleepers;
mod more_threads;
mod move_out;
mod permits;
mod polling;
mod scale;
mod split;
#[cfg(test)]
mod tests;
mod trials;

pub use apply::{Changed, apply, edited};
pub(crate) use band::with_open;
pub use divide::ComputePart;
pub use edit::{Edit, EditError, GoroutineChange};
pub(crate) use even::{created, is_meeting, is_uneven, most_to_do};
pub(crate) use free::timers;
pub(crate) use group_commit::{is_sync, synced_under};
pub(crate) use more_sleepers::own_sleep;
pub use permits::permits;
pub(crate) use permits::{Permits, bounded};
pub use polling::Polling;
pub use trials::{Trial, Trials};
