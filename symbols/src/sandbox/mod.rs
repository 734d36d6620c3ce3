//! What lets untrusted binaries be read without harm: a process that may be lost. It gives up its user, its capabilities
//! and all system calls but those that read what is open already ([`confine`]), gets files handed in over a socket, and
//! answers in messages of limited size ([`wire`]).

mod confine;
mod filter;
mod helper;
mod mapping;
pub mod wire;

pub use confine::{Limits, confine};
pub use helper::{Helper, own_cpu_time_ns};
pub use mapping::Mapping;
