//! Reads untrusted binaries without harm, in an expendable process: longpole continues if the process ends. The process
//! gives up its user, its capabilities and all system calls except those that read open files ([`confine`]). The
//! process receives files over a socket, and answers in messages of limited size ([`wire`]).

mod confine;
mod helper;
mod mapping;
mod seccomp;
pub mod wire;

pub use confine::{ParserLimits, close_all_but_standard, confine};
pub use helper::{Helper, helpers_cpu_time_ns, own_cpu_time_ns};
pub use mapping::Mapping;
