//! The live screen of `longpole top`: what it shows ([`State`]), what keys do ([`Action`]), how it is drawn
//! ([`view::draw`]) and the guard that gives the terminal back. Only [`view`] and [`Guard`] know ratatui.

mod guard;
mod keys;
mod log;
mod state;
mod table;
mod theme;
pub mod view;

#[cfg(test)]
mod samples;

pub use guard::Guard;
pub use keys::{Action, Direction, action_of};
pub use log::LogWriter;
pub use state::{LiveCounts, Measure, Phase, Snapshot, State};
pub use table::{Cell, Row, rows};

pub use theme::Theme;
