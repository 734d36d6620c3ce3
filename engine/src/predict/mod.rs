//! How a program will run on any number of CPUs (VPPB; papers 1999 and 2001): its operations, run on a model of that
//! machine ([`crate::schedule`]), several times with what is left open decided differently. Beside the predicted time:
//! what limits it, where more CPUs stop helping and why, and at which CPU count another function becomes the one to start
//! with.
//!
//! Time that the threads compute is taken as recorded: that it grows when CPUs share caches and memory is not in a recording
//! and not modelled here.

mod combine;
mod forecast;
mod leaders;
mod limits;
mod model;
mod result;
mod timing;
mod words;

pub use combine::combine;
pub use forecast::{Forecast, Run, predict};
pub use model::{Assumptions, Io, Known, Model, Scheduler};
pub use result::{CpuPrediction, Crossover, DeviceLoad, Limit, LockLoad, Prediction, Saturation, ThreadLoad};
pub use timing::{Fluid, Mean, PathFacts, Timing, Visitor};
pub use words::{limit_text, sentences};
