//! `record` and `top`: one pipeline.
//!
//! ```text
//! EventSource ─► Decoder ─► Batch ─► WriterThread ─► session file, RecentWindow ─► AnalysisThread ─► Report
//!  (kernel, file,  (decode,   thread "rings"        thread "writer"                 thread "analysis"
//!   generator)      merge)                                     └──────────── Message ───────────┘
//!                                                   keys, signals, time, /proc ─► LoopState ─► Effects ─► Executor
//! ```
//!
//! If only the session file wants the records, the decoder releases them as the file's chunks.
//!
//! Slow work has threads of its own: "attach" attaches probes, "symbols" chooses what to probe, and the threads of
//! [`capture::unwind`] read what unwinding needs.
//!
//! Bulk data flows through bounded channels between plain threads; one loop on the main thread reads
//! [`Message`]s and decides. If a stage falls behind, the stage before waits. In the end the kernel's rings
//! fill, and lost records are counted there.

mod analyse;
mod cpu_runs;
mod keep;
mod main_loop;
mod naming;
mod paragraph;
mod probes;
mod record;
mod rings;
mod summary;
#[cfg(test)]
mod tests;
mod top;

pub use analyse::{Asked, limit_and_cost, limit_of_input, snapshot};
pub use cpu_runs::{on_cpus, pool};
pub use keep::{Destination, WindowFile};
pub use main_loop::{
    ChangeKind, Chosen, Effect, Ended, FunctionRequest, Granted, LibcChosen, LibcCounts, Listen, LoopState,
    Message, Mode, NewFunctions, Observations, Placing, ProcessChange, Setup, StopReason, Unprobed,
    UnprobedCounts, WindowPlan, run,
};
pub use probes::{Choose, HotFunction, HotFunctions, SampledPlace, Tally};
pub use record::{record, record_silently};
pub use rings::{AtEnd, Attach, Batch, Decoder, Drained, EventSource, LiveSource, Pace, Probed, Replay};
pub use summary::RecordSummary;
pub use top::top;
