//! Causes that may limit a run, a file for each kind that takes more than a simulation without it.

mod answering_threads;
pub(super) mod asked_again;
mod busy_thread;
mod connections;
mod cpu_costs;
mod goroutines;
pub(super) mod idle;
pub(super) mod loaded;
mod open_requests;
mod permits;
pub(super) mod pools;
mod request_wait;
pub(super) mod rounds;
mod serial_again;
mod shared_lines;
mod sleepers;
mod small_tasks;
mod spun_waits;
mod starved_writers;
pub(super) mod stretch;
mod support_work;
mod turns;
pub(super) mod unrecorded_locks;
mod woken_for_nothing;
