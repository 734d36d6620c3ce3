//! The program longpole: its command line, its live loop, and all of its output.

// These macros panic when stdout or stderr is closed; `exit::say` does not.
#![cfg_attr(not(test), deny(clippy::print_stderr, clippy::print_stdout))]

pub mod cell;
pub mod cli;
pub mod content;
mod cores;
mod cpu_words;
pub mod doctor;
pub mod exit;
pub mod export;
pub mod input;
mod level_of_detail;
pub mod listen;
pub mod live;
pub mod page;
mod palette;
mod part;
mod part_of_file;
pub mod plan;
pub mod present;
pub mod rules;
pub mod threads;
pub mod tui;
pub mod validate;
