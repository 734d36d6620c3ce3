//! Synchronization operations recorded from inside launched programs. They need root (or the capabilities), a kernel
//! with BPF and compilers; elsewhere each says that it is skipped.

mod beside;
mod bursts;
mod cost;
mod counts;
mod execs;
mod forbidden;
mod life;
mod memory;
mod odd;
mod support;
