//! `longpole validate -- CMD`: is the prediction true? The command is recorded on few CPUs and run without longpole on
//! 1, 2, 4 … CPUs. Then the predicted speed-up is compared with the measured one, as in the validation of the 1999
//! paper, section 5.1: error = |real − predicted| ÷ real, where real is the median of several runs.
//!
//! Recordings vary as much as other runs do. So there are several of them, too, in turn with the measured runs, and the
//! median of their predictions counts. A run before all others warms up files and memory.
//!
//! Errors are separated by cause. A run on N CPUs takes more CPU time than one on a single CPU where caches, memory or
//! hardware threads are shared (*inflation*). No recording on one CPU can show that. The remaining error is the
//! simulation's.

mod compare;
mod forecast;
mod leftover_processes;
mod measure;
mod recordings;
mod run;
mod text;

pub use compare::{Comparison, Row};
pub use measure::{Measurement, Run};
pub use run::{Validation, validate};
