//! The live screen of `longpole top`: what it shows ([`State`]), what keys do ([`Action`]), how it is drawn
//! ([`view::draw`]) and the guard that gives the terminal back. Only [`view`] and [`Guard`] know ratatui.

mod guard;
mod keys;
mod log;
mod prompt;
mod state;
mod table;
mod theme;
pub mod view;

#[cfg(test)]
mod samples;

pub use guard::Guard;
pub use keys::{Action, Asking, Direction, action_of};
pub use log::LogWriter;
pub use prompt::{Prompt, Typed};
pub use state::{LiveCounts, Measure, Phase, Snapshot, State, View};
pub use table::{Cell, Row, lock_rows, rows};

pub use theme::Theme;
