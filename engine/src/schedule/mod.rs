//! Discrete-event simulation of a program on unlimited processors (engine of 1999, section 3.2; paper 2001, section
//! 2.1), re-deciding who waits for whom at every synchronization object. It advances by instants: all that happens
//! at one moment comes out together, as [`Vertex`]es in time order, so a consumer can work on a stream.
//!
//! Ties are decided by one rule: threads that act at the same instant act in the order in which they became ready
//! (at the start in list order); each runs until it computes or waits; a thread it wakes goes to the end of that
//! instant's queue. A computation of length 0 is a computation: the thread goes to the end of the queue.

mod actor;
mod agenda;
mod barrier;
mod condition;
mod deadlock;
mod forest;
mod life;
mod mutex;
mod oddities;
mod once;
mod queue;
mod read_write;
mod runs;
mod semaphore;
mod simulation;
mod spin;
mod table;
mod wake;

pub use forest::{Forest, PointId};
pub(crate) use runs::RunBreaks;
pub use runs::Runs;
pub(crate) use simulation::Step;
pub use simulation::{Schedule, Simulation, Vertex};
