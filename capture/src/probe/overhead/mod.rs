//! The cost of recording, and the loop that keeps it within the budget: [`controller`] measures each cost and acts.
//!
//! `calibrate` measures a hit's cost beforehand. `cost_accounting` adds up all costs: `preload_cost` has the cost of
//! the library in the program, `program_rates` that of the kernel programs (measured by `program_times`). `spending`
//! has the sums at a check, `spending_window` the differences between checks. From these, `budget` decides which
//! functions lose their probes and when, `adaptive_sampling` how many ticks are skipped, `packet_watch` whether packets
//! over the loopback device are followed, `request_watch` when requests are counted, and `poll_urgency` how soon the
//! next check is due. All of these are pure functions.

pub(super) mod adaptive_sampling;
pub(super) mod budget;
pub(super) mod calibrate;
pub(super) mod controller;
pub(super) mod cost_accounting;
mod packet_watch;
mod poll_urgency;
pub(super) mod preload_cost;
mod program_rates;
mod program_times;
pub(super) mod request_watch;
pub(super) mod spending;
mod spending_window;
