//! longpole itself: the command line, the live loop, and what a person sees.

// They panic when nobody listens any more; see cli::say.
#![cfg_attr(not(test), deny(clippy::print_stderr, clippy::print_stdout))]

pub mod cli;
pub mod cores;
pub mod doctor;
pub mod export;
pub mod listen;
pub mod live;
pub mod page;
pub mod present;
pub mod rules;
pub mod tui;
pub mod validate;
