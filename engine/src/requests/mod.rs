//! Single requests of a server: the latency of each, and its causes along the request's own critical path in the
//! recording. (A method of longpole's own;  the path of a whole run is in [`crate::critical_path`].)
//!
//! - [`calls`]: requests that are calls of functions. [`at_sockets`]: requests that arrive at sockets. [`traces`]: requests that the
//!   program marks as traces.
//! - [`Paths`]: walks a request back from its end, through the threads that it waited for. The parts add up to its latency.
//! - [`summarize`]: latencies, causes of slow requests compared with fast ones, and the 99th percentile without each cause.
//! - [`stacks`]: the causes by call stack.
//!
//! **The walk.** It starts in the thread that ends the request, at its end, and goes back in time. The thread's computing and
//! waits for a CPU are parts of the path. A wait that a thread of the recording ended consists of what that thread did in the
//! same time, which may be waiting for another thread. Then the walk goes on before the wait, in the thread that waited.
//! Before a thread read it, a request waited for that thread: behind other requests as long as the thread still had to end
//! one, then for what the thread did.
//!
//! **Cost.** A request takes steps in proportion to the intervals and calls on its path, each with a binary search. A stretch
//! on the path of many requests is walked for each of them. Therefore all requests together get [`STEPS_PER_EVENT`] steps for
//! each interval, call and request of the recording, and one request gets [`MOST_STEPS`]. The rest of the latency is
//! [`Cause::NotFollowed`], as is everything below [`DEEPEST`] threads that wait for each other.

mod answers;
mod calls;
mod cause;
mod cpu_waits;
mod groups;
mod holders;
mod mean;
mod meanwhile;
mod model;
mod names;
mod paths;
mod peers;
mod sampled;
mod shares;
mod sockets;
mod stacks;
mod summary;
mod sums;
mod tops;
mod traces;
mod waits;
mod walk;
mod without;

pub use calls::{Calls, Request, calls};
pub use cause::{Cause, LockRef, Outside, PathPart, Source};
pub use groups::{Groups, SlowGroup};
pub use mean::time_of_requests;
pub use model::{CauseKind, CauseRow, HolderDetail, Latencies, RequestSummary, WithoutRow};
pub use paths::{DEEPEST, MOST_STEPS, Paths, STEPS_PER_EVENT};
pub use sockets::{Sockets, at_sockets};
pub use stacks::{Means, SpentOn, stacks};
pub use summary::summarize;
pub use traces::traces;
