//! Where records are kept: a session file, the newest part of one, or a window in memory.

mod counts_over_time;
mod destination;
mod recent_window;
pub(crate) mod record_output;
pub(crate) mod ring_file;
mod saved;
mod session_meta;
mod window_file;
mod writer_thread;

pub use destination::Destination;
pub use window_file::WindowFile;

pub(crate) use destination::{Part, Written};
pub(crate) use recent_window::RecentWindow;
pub(crate) use record_output::{Output, broken_off_text, kept_text};
pub(crate) use saved::Saved;
pub(crate) use session_meta::session_meta;
pub(crate) use writer_thread::{BATCHES, WriterThread};
