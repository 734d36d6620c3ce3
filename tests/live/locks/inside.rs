//! Operations recorded from inside launched programs.

mod beside;
mod bursts;
mod cost;
mod counts;
mod execs;
mod forbidden;
mod life;
mod memory;
mod odd;
