//! What recording costs, and how it keeps to its budget: one loop, [`controller`], measures what each source costs, compares, and acts.
//!
//! `calibrate` measures beforehand what a hit costs; `cost_accounting` keeps the books, in which `preload_cost` is the part of the library
//! inside the program and `program_rates` what the kernel programs take (`program_times`); `spending` is what they show at a look,
//! `spending_window` what lies between looks. From that `budget` decides which functions lose their probes and when they
//! may come back, `adaptive_sampling` how many ticks are left out, `packet_watch` whether packets over the loopback device are
//! followed, and `request_watch` when requests are counted. `poll_urgency` is how soon the next look is due. These decisions are pure: time and costs come in, what to do comes out.

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
