//! Everything of longpole that touches the outside world: probes, session files, symbols, screens.

pub mod cli;
pub mod doctor;
pub mod live;
pub mod present;
pub mod probe;
pub mod session;
pub mod symbols;
pub mod target;
pub mod tui;
