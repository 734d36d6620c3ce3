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
//! [`message::Message`]s and decides. If a stage falls behind, the stage before waits. In the end the kernel's rings
//! fill, and lost records are counted there.

mod alive;
mod analysis;
mod analysis_thread;
mod attach;
mod attach_thread;
mod c_libraries;
mod counts_over_time;
mod cpu_runs;
mod decoder;
mod destination;
mod effect;
mod executor;
mod function_finder;
mod hot_functions;
mod initial_functions;
mod initial_libraries;
mod inputs;
mod keyboard;
mod later_functions;
mod library_probes;
mod limit_line;
mod live_source;
mod lock_rate_trials;
mod lock_recording;
mod loop_state;
mod message;
mod moving_libraries;
mod naming;
mod new_process_delay;
mod observations;
mod pacing;
mod paragraph;
mod pipeline;
mod poll_backoff;
mod probe_selection;
mod probed_functions;
mod program_state;
mod reader_commands;
mod recent_window;
mod record;
mod record_output;
mod replay;
mod ring_file;
mod ring_reader;
mod run;
mod sampled_places;
mod saved;
mod session_meta;
mod short_lived;
mod sliding;
mod source;
mod summary;
mod tally;
mod target_remarks;
#[cfg(test)]
mod tests;
mod thread_snapshots;
mod top;
mod trials;
mod trigger;
mod window_file;
mod writer_thread;

pub use analysis::{Asked, snapshot};
pub use cpu_runs::{on_cpus, pool};
pub use decoder::{Batch, Decoder};
pub use destination::Destination;
pub use effect::Effect;
pub use function_finder::Choose;
pub use hot_functions::{HotFunction, HotFunctions};
pub use limit_line::{limit_and_cost, limit_of_input};
pub use live_source::LiveSource;
pub use loop_state::{LoopState, Mode, StopReason};
pub use message::{
    ChangeKind, Chosen, FunctionRequest, Granted, LibcChosen, LibcCounts, Message, NewFunctions, Placing,
    ProcessChange, Unprobed, UnprobedCounts,
};
pub use observations::Observations;
pub use record::{record, record_silently};
pub use replay::{Pace, Replay};
pub use ring_reader::AtEnd;
pub use run::{Ended, Listen, Setup, WindowPlan, run};
pub use source::{Attach, Drained, EventSource, Probed};
pub use summary::RecordSummary;
pub use tally::{SampledPlace, Tally};
pub use top::top;
pub use window_file::WindowFile;
