//! Tests of the crate on real, compiled, running and hostile programs.

mod against_llvm;
mod compiled;
mod exits_against_objdump;
mod exits_at_run_time;
mod go;
mod hostile;
mod lock_regions;
mod sources;
mod usdt;
mod wait_loops;
