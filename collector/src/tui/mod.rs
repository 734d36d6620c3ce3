//! The live screen of `longpole top`: its state ([`State`]), the actions of keys ([`Action`]), its picture
//! ([`picture()`]: lines of the same text as `report`), and the guard that restores the terminal. Only [`Guard`] uses
//! ratatui.

mod guard;
mod history;
mod keys;
mod lines;
mod log;
mod order;
mod pages;
mod picture;
mod prompt;
mod requests;
mod state;
#[cfg(test)]
mod tests;
mod view;

pub use guard::Guard;
pub use keys::{Action, Direction, PromptKind, action_of};
pub use log::LogWriter;
pub use picture::{last_picture, picture};
pub use prompt::{Prompt, Typed};
pub use requests::Requests;
pub use state::{CpuWish, LiveCounts, Phase, Snapshot, State};
pub use view::View;
