//! From a recorded window to a report: when one is due, how deep it goes, and the thread that makes it.

mod analysis;
mod analysis_thread;
mod limit_line;
mod pacing;
mod sliding;

pub use analysis::{Asked, snapshot};
pub use limit_line::{limit_and_cost, limit_of_input};

pub(crate) use analysis_thread::AnalysisThread;
pub(crate) use sliding::{Due, Sliding};
