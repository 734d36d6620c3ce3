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
mod barrier;
mod cause_tree;
#[cfg(test)]
mod cause_tree_tests;
mod condition;
mod consistency;
mod costs;
mod cpu_accounting;
mod deadlock;
mod device;
mod forest;
mod lifecycle;
mod machine;
mod mutex;
mod observe;
mod once;
mod processors;
mod queue;
mod read_write;
mod recorded_wakes;
mod result;
mod run;
mod run_path;
mod runs;
mod semaphore;
mod shared_cpus;
mod simulation;
mod source;
mod spin;
mod table;
mod usage;

pub use cpu_accounting::{Interval, SimulatedState, ThreadUse, Watcher};
pub use forest::{Forest, PointId};
pub(crate) use machine::Machine;
pub use machine::Why;
pub(crate) use observe::{Observer, run_observed};
pub use processors::{SchedulerCounts, SchedulerParameters, base_slice};
pub use result::DelayKind;
pub(crate) use result::Step;
pub(crate) use result::{Charge, Costed, Delay, Latency};
pub use result::{Schedule, Vertex};
pub use run::{RunOutcome, Setup, Sharing, run, run_watched};
pub(crate) use run::{run_checked, run_with_path, run_with_route};
pub use run_path::{OnPath, Passed, PathStretch, RunPath, Visit};
pub use runs::Runs;
pub use shared_cpus::SharedCpuCosts;
pub use simulation::Simulation;
pub use source::{Operations, Whole};
pub use usage::ObjectUse;
