//! Makes reports of recorded windows: decides when a report is due and how deep the analysis goes, and has the thread
//! for it.

mod analysis;
mod analysis_thread;
mod limit_line;
mod pacing;
mod sliding;

pub use analysis::{Asked, snapshot};
pub use limit_line::{limit_and_cost, limit_of_input};

pub(crate) use analysis_thread::AnalysisThread;
pub(crate) use sliding::{Due, Sliding};
