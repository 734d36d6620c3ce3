//! Keeps records: in a session file, the newest part in a file, or a window in memory.

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
