//! Tests of operations that the preloaded library records in launched programs.

mod bursts;
mod cost;
mod counts;
mod deadlock;
mod execs;
mod forbidden;
mod lifecycle;
mod memory;
mod other_preloads;
mod pauses;
mod unusual_programs;
