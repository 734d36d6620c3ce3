//! Tests of `collector::symbols` on real, compiled, running and hostile programs.

mod compiled;
mod exits_against_objdump;
mod exits_at_run_time;
mod hostile;
mod sources;
