//! Version 1 of the session file. All numbers are little-endian.
//!
//! ```text
//! file    = header chunk*
//! header  = magic[8] major:u16 minor:u16 abi_version:u32 crc32:u32            20 bytes; the crc is of the bytes before it
//! chunk   = magic[4] kind:u16 flags:u16 stored_bytes:u32 raw_bytes:u32 items:u32
//!           first_ns:u64 last_ns:u64 payload_crc32:u32 header_crc32:u32        44 bytes, then stored_bytes of payload
//! ```
//!
//! Flag 1 of a chunk: the payload is one zstd frame of `raw_bytes`. The kinds of chunks, and their payloads:
//!
//! | kind | payload | items |
//! |---|---|---|
//! | 1 meta | JSON [`super::Meta`]; the first chunk | 1 |
//! | 2 facts | JSON `engine::event::Facts`; may come again with additions: a later function with the same id, thread with the same tid and start time, process with the same pid, address of the same process and time, or module with the same path and build-id replaces the earlier | entries |
//! | 3 events | columns of records: see [`columns`] | records |
//! | 4 notes | JSON array of `engine::event::Note` | notes |
//! | 5 end | JSON `engine::event::WindowEnd`: the recording ended in an orderly way | 1 |
//! | 6 index | one entry per chunk since the last part of an index, then its own offset and a mark; the last chunk: see [`index`] | chunks |
//! | 7 stacks | stacks that samples refer to: see [`stacks`]; a reader adds them to the notes | stacks |
//! | 8 index part | as an index, in the middle of a very long recording: a single index would be larger than a chunk may be | chunks |
//! | 9 draft | chunks that are not yet full and belong at the offset in `first_ns`: see [`tail`]; none in a recording that has ended | records |
//! | 10 end part | JSON `engine::event::WindowEnd` with threads and pending operations only, which belong to the end that follows, before its own; only if there are many | threads and operations |
//! | 11 cut stacks | which stacks of the last chunk of stacks have more frames beyond their outermost: see [`stacks`]; no such chunk if none has | such stacks |
//! | 12 snapshot | JSON `engine::event::Facts` with the processes and threads of an instant only: a reader may begin there instead of at the start, as if recording had begun then | threads |
//!
//! A reader skips chunks of kinds that it does not know. Without kinds 10 and 11 it lacks threads at the end, which
//! only confirm what the records show, and cut stacks look complete. No file can make a reader use unbounded memory.
//! Chunks are at most 16 MiB unpacked (a draft 32 MiB). A writer stores a chunk unpacked if it would pack better than
//! 256 : 1. A reader stops when events would fill half of the free memory. All other content has limits ([`room`]),
//! which a writer keeps: it omits entries beyond them, and counts them at the end.

mod add;
mod carried;
mod chunk;
mod columns;
mod copy;
mod cut;
mod disk;
mod drafts;
mod event_chunk;
mod header;
mod index;
mod join;
mod limited;
mod merge;
mod object;
mod outline;
mod reader;
mod ring_in_memory;
mod ring_on_disk;
mod room;
mod stacks;
mod tail;
#[cfg(test)]
mod tests;
pub mod varint;
mod walk;
mod writer;

pub use add::add_facts;
pub use disk::Disk;
pub use event_chunk::{Contradiction, EventChunk, EventChunks};
pub use header::{FileHeader, MAGIC};
pub use outline::{EventsAt, Outline};
pub use reader::read;
pub use ring_in_memory::Ring;
pub use ring_on_disk::{Generations, Kept, Older, Shelf};
pub use room::FileLimits;
pub use stacks::memory as stack_bytes;
pub use writer::{SessionSummary, Writer};
