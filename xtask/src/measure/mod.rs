//! Benchmarks and validations as data, and the runner for both. docs/recipes.md says how to add one.

mod measurement;
mod results;
mod runner;
mod setting;
mod table;
mod tracefs;
mod turns;
mod watched;

pub use measurement::{Cell, Fills, Measurement, Need, Runs, Side};
pub use results::{Outcome, Results};
pub use runner::{names, run};
pub use setting::{Scratch, Setting, Wishes, built, is_here, recorder};
pub use table::table;
pub use turns::in_turns;
pub use watched::{Watched, memory_kib, watched};
