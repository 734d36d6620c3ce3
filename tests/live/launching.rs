//! Commands that longpole starts.

mod command;
