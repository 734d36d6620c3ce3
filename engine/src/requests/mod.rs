//! Single requests of a server: how long each took, and what that time was spent on, along its own critical path in the
//! recording. (Ours; the path of a whole run is in [`crate::critical_path`].)
//!
//! - [`calls`]: requests that are calls of functions.
//! - [`Paths`]: walks a request back from its end, through the threads that it waited for. The parts add up to its latency.
//! - [`summarize`]: latencies, what slow requests spend that fast ones do not, and what the 99th percentile would be without.
//! - [`stacks`]: the same by call stack.
//!
//! **The walk.** It starts in the thread that ends the request, at its end, and goes back in time. What the thread computed
//! counts for that; so does waiting for a CPU. A wait that a thread of the recording ended is what that thread did in the
//! same time, which may be waiting for another one. Then the walk goes on before the wait, in the thread that waited.
//!
//! **Cost.** A request takes steps in proportion to the intervals and calls on its path, each with a binary search. A stretch
//! on the path of many requests is walked for each of them. Therefore all requests together get [`STEPS_PER_EVENT`] steps for
//! each interval, call and request of the recording, and one request gets [`MOST_STEPS`]. What is left is
//! [`Cause::NotFollowed`]; so is what lies below [`DEEPEST`] threads that wait for each other.

mod answers;
mod calls;
mod cause;
mod cpu_waits;
mod groups;
mod holders;
mod model;
mod names;
mod paths;
mod sampled;
mod shares;
mod stacks;
mod summary;
mod sums;
mod tops;
mod waits;
mod walk;
mod without;

pub use calls::{Calls, Request, calls};
pub use cause::{Cause, LockRef, Outside, Part, Source};
pub use groups::{Groups, SlowGroup};
pub use model::{Detail, Latencies, Row, RowKind, Summary, WithoutRow};
pub use paths::{DEEPEST, MOST_STEPS, Paths, STEPS_PER_EVENT};
pub use stacks::{Means, SpentOn, stacks};
pub use summary::summarize;
