//! Reads records from a source (rings of the kernel, a file, a generator), and makes batches in order of time.

mod context_places;
mod decoder;
mod goroutine_looks;
mod live_source;
mod new_mappings;
mod poll_backoff;
mod program_state;
mod reader_commands;
mod replay;
mod request_reader;
pub(crate) mod ring_reader;
pub(crate) mod source;
mod thread_snapshots;
mod trigger;

pub use decoder::{Batch, Decoder};
pub use live_source::LiveSource;
pub use replay::{Pace, Replay};
pub use ring_reader::AtEnd;
pub use source::{Attach, Drained, EventSource, Probed};

pub(crate) use reader_commands::{ReaderCommands, reader_commands};
pub(crate) use ring_reader::{Command, Wanted, WriterMessage};
pub(crate) use thread_snapshots::{TakeSnapshot, ThreadSnapshots};
pub(crate) use trigger::{Fired, Triggers};
