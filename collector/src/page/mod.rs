//! The page: a recording as one HTML file that needs nothing else, neither network nor server. Its tables are
//! the unchanged JSON documents of the other commands. Its pictures are states, calls, lock sections and
//! critical paths ([`engine::view`]), coarse enough to stay below a size limit.

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
