//! Discrete-event simulation of a program (engine of 1999, section 3.2; paper 2001, section 2.1), on unlimited
//! processors or another machine. Which thread waits for which is decided again at every synchronization object. It
//! advances by instants: all [`Vertex`]es of one instant come out together, in time order.
//!
//! One rule decides ties: threads that act at the same instant act in the order in which they became ready, at the
//! start in list order. Each runs until it computes or waits; a thread that it wakes goes to the end of that instant's
//! queue. A computation of length 0 sends the thread to the end of the queue, too.

mod actor;
mod agenda;
mod background;
mod core;
mod costs;
mod machine;
mod objects;
mod observe;
mod outcome;
mod processors;
mod run;
mod runs;
mod shared_cpus;
mod simulation;
mod source;
mod steps;

pub(crate) use machine::Machine;
pub use machine::Why;
pub(crate) use observe::{Observer, run_observed};
pub use outcome::cpu_accounting::{Interval, SimulatedState, ThreadUse, Watcher};
pub use outcome::forest::{Forest, PointId};
pub use outcome::result::DelayKind;
pub(crate) use outcome::result::Step;
pub(crate) use outcome::result::{Charge, Costed, Delay, Latency};
pub use outcome::result::{Schedule, Vertex};
pub use outcome::run_path::{OnPath, Passed, PathStretch, RunPath, Visit};
pub use outcome::usage::ObjectUse;
pub use processors::{SchedulerCounts, SchedulerParameters, base_slice};
pub use run::{RunOutcome, Setup, Sharing, run, run_watched};
pub(crate) use run::{run_checked, run_with_path, run_with_route};
pub use runs::Runs;
pub use shared_cpus::SharedCpuCosts;
pub use simulation::Simulation;
pub use source::{Operations, Whole};
