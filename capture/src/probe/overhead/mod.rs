//! What recording costs, and how it keeps to its budget: one loop, [`controller`], measures what each source costs, compares, and acts.
//!
//! `calibrate` measures beforehand what a hit costs; `cost_accounting` keeps the books, in which `preload_cost` is the part of the library
//! inside the program; `spending` is what they show at a look. From that `budget` decides which functions lose their probes and when they
//! may come back, and `adaptive_sampling` how many ticks are left out. `poll_urgency` is how soon the next look is due. Both decisions
//! are pure: time and costs come in, what to do comes out.

pub(super) mod adaptive_sampling;
pub(super) mod budget;
pub(super) mod calibrate;
pub(super) mod controller;
pub(super) mod cost_accounting;
pub(super) mod poll_urgency;
pub(super) mod preload_cost;
pub(super) mod spending;
