//! Probes on the synchronization functions of real C libraries: the same as the library inside records, call by call.

mod life;
mod processes;
mod support;
mod ways;
mod ways_out;
