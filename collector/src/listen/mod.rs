//! `top --listen`: what `top` shows, as metrics for Prometheus and as a page for browsers.
//!
//! ```text
//! loop ─► Board: the newest report alone ─► Texts, made once a second at most ─► answers
//!                                            thread "listen", behind others
//! ```
//!
//! Clients cannot hold up the recording: the main loop puts a report on the board and goes on, and a client that does not
//! read is dropped. No request reads a file.

mod access;
mod answer;
mod board;
mod metrics;
mod server;
#[cfg(test)]
mod tests;
mod texts;

pub use access::{Access, Token};
pub use board::{Board, stretch};
pub use server::{Listener, Socket};
