//! Reads and writes the session file: the kernel's records, encoded without loss, and the facts recorded with them.
//!
//! A session consists of a header and of chunks, each with its length and checksum. A writer only appends chunks, so a
//! file can always be read up to its last complete chunk: after `kill -9`, on a full disk, or if the file is cut or
//! damaged. Each version of the format has a module; `src/v1/mod.rs` describes the bytes.
//!
//! How a program reads a recording (`examples/contents.rs` prints its whole content):
//!
//! ```no_run
//! let (recording, about) = recording::read("longpole.lp".as_ref())?;
//! println!("{} events of {} functions", recording.events.len(), recording.facts.functions.len());
//! if let Some(damage) = about.damage {
//!     println!("read up to where it is damaged: {damage:?}");
//! }
//! # Ok::<(), recording::SessionError>(())
//! ```

// These macros panic when nobody reads the output any more.
#![cfg_attr(not(test), deny(clippy::print_stderr, clippy::print_stdout))]

mod add;
mod damage;
mod error;
mod file;
mod info;
mod meta;
mod owner;
mod read;
mod two_files;
mod v1;
mod whole;
mod write;

pub use add::add_facts;
pub use damage::{Damage, DamageKind};
pub use error::SessionError;
pub use file::{CreateError, CreateProblem, Overwrite, check_file, create_file, create_unused, default_name};
pub use info::SessionInfo;
pub use meta::{ClockAnchor, Meta, online_cpus};
pub use owner::SudoUser;
pub use read::{free_memory, is_session, outline, read, read_from};
pub use two_files::TwoFiles;
pub use v1::varint;
pub use v1::{
    Contradiction, Disk, EventChunk, EventChunks, EventsAt, FileLimits, Generations, Kept, Older, Outline,
    Ring, SessionSummary, Shelf, Writer, stack_bytes,
};
pub use whole::write_whole;
pub use write::write_recording;
