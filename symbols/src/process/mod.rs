//! The process that parses binaries, and the messages that it exchanges with longpole.

mod mapped_binary;
mod missing;
mod parser;
mod path_bytes;
mod serve;
mod service;

pub use mapped_binary::{CallPlace, MappedBinary, call_place};
pub use parser::{Parser, Parsers};
#[cfg(feature = "fuzzing")]
pub(crate) use serve::look_at;
pub use serve::serve;
#[cfg(feature = "fuzzing")]
pub(crate) use service::Look;
pub use service::SymbolSummary;
