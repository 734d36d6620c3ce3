//! Commands that longpole starts.

mod command;
mod long;
