//! Everything of longpole that touches the outside world: probes, session files, symbols, screens.

// They panic when nobody listens any more; see cli::say.
#![cfg_attr(not(test), deny(clippy::print_stderr, clippy::print_stdout))]

pub mod cli;
pub mod cores;
pub mod doctor;
pub mod export;
pub mod interpose;
pub mod listen;
pub mod live;
pub mod made_code;
pub mod page;
pub mod present;
pub mod probe;
pub mod rights;
pub mod rules;
pub mod target;
pub mod tui;
pub mod unwind;
pub mod validate;
