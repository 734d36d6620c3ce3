//! Tests of commands that longpole starts.

mod command;
mod long;
