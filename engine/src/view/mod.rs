//! Single states, calls and stretches of a run in the words of a report, for other tools and for pictures. A report has their
//! sums.
//!
//! - [`Measured`]: states of threads, function slices, wake-ups and lock sections of a recording, in its own time.
//! - [`path`]: the path of the predicted run on a number of CPUs, stretch by stretch.
//! - [`Stacks`]: call stacks with their CPU time and their part of the predicted time, for each CPU count.
//! - [`Together`]: these stacks with a report and a prediction, from the same runs.

mod calls;
mod measured;
mod running;
mod stacks;
mod states;
mod stretches;
mod together;

pub use calls::Slice;
pub use measured::{Measured, ThreadFacts, WakeUp};
pub use running::Running;
pub use stacks::{Frame, Stack, StackBuilder, StackPart, Stacks, Weighed};
pub use states::{ThreadActivity, ThreadState};
pub use stretches::{PathView, StretchKind, ViewStretch, path, path_and_run};
pub use together::{Together, TogetherPart};
