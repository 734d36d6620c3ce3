//! `record` and `top`: one pipeline.
//!
//! ```text
//! EventSource ─► Intake ─► Batch ─► keeper ─► session file, sliding window ─► analyst ─► Report
//!  (kernel, file,  (decode,   thread "rings"      thread "keeper"              thread "analysis"
//!   generator)      merge)                                     └──────────── Message ───────────┘
//!                                                   keys, signals, time, /proc ─► Control ─► Effects
//! ```
//!
//! Where nobody but the session file wants them, records leave Intake as the file's chunks.
//!
//! What takes its time is done beside it: the thread "attach" puts probes on, "symbols" chooses what to probe, and those of
//! [`capture::unwind`] read what stacks need.
//!
//! Bulk data flows through bounded channels between plain threads; one loop on the main thread reads
//! [`message::Message`]s and decides. If a stage falls behind, the one before waits, at last the kernel's rings
//! fill, and what does not fit is counted there.

mod alive;
mod analysis;
mod analyst;
mod attach;
mod attaching;
mod beside;
mod chooser;
mod control;
mod ended;
mod first_functions;
mod functions;
mod hands;
mod inputs;
mod intake;
mod keeper;
mod kernel;
mod keyboard;
mod libc;
mod libraries;
mod limit_line;
mod lock_trials;
mod locks;
mod message;
mod naming;
mod orders;
mod pacing;
mod promising;
mod pump;
mod quiet;
mod record;
mod replay;
mod run;
mod seen;
mod settling;
mod sliding;
mod source;
mod stretch;
mod summary;
mod tally;
mod target_remarks;
#[cfg(test)]
mod tests;
mod top;
mod trials;
mod worth;

pub use analysis::{Asked, snapshot};
pub use chooser::Choose;
pub use control::{Control, Effect, Mode, StopReason};
pub use intake::{Batch, Intake};
pub use kernel::Kernel;
pub use limit_line::limit_of_input;
pub use message::{
    ChangeKind, Chosen, Granted, LibcChosen, LibcCounts, Message, NewFunctions, Placing, ProcessChange,
    Unprobed, UnprobedCounts, Wish,
};
pub use promising::{Promising, Sighting};
pub use pump::EndThreads;
pub use record::{record, record_silently};
pub use replay::{Pace, Replay};
pub use run::{Ended, Listen, Setup, WindowPlan, run};
pub use source::{Attach, Drained, EventSource, Probed};
pub use summary::RecordSummary;
pub use tally::{Sampled, Tally};
pub use top::top;
