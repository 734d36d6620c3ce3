//! `longpole validate -- CMD`: is the prediction true? The command is recorded on few CPUs, run without longpole on
//! 1, 2, 4 … CPUs, and the predicted speed-up is set beside the measured one (the validation of the 1999 paper,
//! section 5.1: error = |real − predicted| ÷ real, real = the middle of several runs).
//!
//! What differs is told apart: a run on N CPUs takes more CPU time than one on a single CPU where caches, memory or
//! hardware threads are shared (*inflation*); no recording on one CPU can know that. The rest is the error of the
//! simulation.

mod compare;
mod left;
mod measure;
mod run;
mod setup;

pub use compare::{Comparison, Row};
pub use measure::{Measurement, Run};
pub use run::{Inflated, Validation, validate};
pub use setup::{depends_on_cpus, doubling};
