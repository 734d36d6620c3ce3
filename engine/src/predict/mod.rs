//! Predicts how a program runs on any number of CPUs (VPPB; papers 1999 and 2001). Its operations run on a model of the
//! machine ([`crate::schedule`]), several times with other choices of the scheduler. The prediction also gives the CPU count
//! beyond which more CPUs do not help, and those at which the leading function changes. What limits the program is in
//! [`crate::limit`].
//!
//! Compute times are as recorded, with three exceptions. Threads wait longer for cache lines that several of them change, the
//! more of them run ([`shared_lines`]). Fewer CPUs save the work to wait for locks ([`lock_costs`]). And CPUs that share caches and memory make computing slower, which is known only if
//! the command was run on several numbers of CPUs ([`cpu_costs`]).

mod combine;
mod cpu_costs;
mod forecast;
mod leaders;
mod lock_costs;
mod model;
mod result;
mod shared_lines;
mod timing;

pub use combine::combine;
pub use cpu_costs::{CountCosts, CpuCosts, Grown, Losses, Spread};
pub use forecast::{CountRuns, Forecast, predict};
pub(crate) use leaders::Led;
pub use model::{Assumptions, Io, KnownNs, Model, NO_QUOTA, Scheduler};
pub use result::{CpuPrediction, Crossover, DeviceLoad, LockLoad, Prediction, Saturation, ThreadLoad};
pub(crate) use shared_lines::LineLoad;
pub use timing::{Fluid, Mean, PathFacts, Timing, Visitor};
