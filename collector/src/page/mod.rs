//! The page: a recording as one HTML file that needs no other file, no network and no server. Its tables are the unchanged
//! JSON documents of other commands. Its pictures show states, calls, lock sections and critical paths
//! ([`engine::view`]), with as much detail as the size limit allows.

mod colours;
mod columns;
mod document;
mod html;
mod lanes;
mod measured;
mod path;
mod predicted;
mod sources;

pub use document::{Curve, Document, Point, Stop, Tables};
pub use html::{MOST_BYTES, is_page, write};
pub use predicted::Simulated;
