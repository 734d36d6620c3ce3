//! How a program will run on any number of CPUs (VPPB; papers 1999 and 2001): its operations, run on a model
//! of that machine ([`crate::schedule`]), several times with the scheduler's free choices made differently.
//! In addition to the predicted time: where more CPUs stop helping, and at which CPU count another function
//! becomes the one to start with. What limits it is for [`crate::limit`] to say.
//!
//! Time that the threads compute is taken as recorded, but for cache lines that several of them change: threads wait longer for
//! these the more of them run ([`shared_lines`]). That it grows when CPUs share caches and memory is not in a recording, unless the
//! command was run on several numbers of CPUs ([`cpu_costs`]).

mod combine;
mod cpu_costs;
mod forecast;
mod leaders;
mod model;
mod result;
mod shared_lines;
mod timing;

pub use combine::combine;
pub use cpu_costs::{CountCosts, CpuCosts, Grown, Losses, Spread};
pub use forecast::{Forecast, Run, predict};
pub(crate) use leaders::Led;
pub use model::{Assumptions, Io, Known, Model, NO_QUOTA, Scheduler};
pub use result::{CpuPrediction, Crossover, DeviceLoad, LockLoad, Prediction, Saturation, ThreadLoad};
pub(crate) use shared_lines::LineLoad;
pub use timing::{Fluid, Mean, PathFacts, Timing, Visitor};
