//! The machine that the program runs on: its clock, its CPUs and their speed, and what limits the program there.

pub(super) mod busy;
pub(super) mod cgroup;
pub(super) mod clock;
pub(super) mod cpu_quota;
pub(super) mod cpus;
pub mod idle_wake;
pub mod line_transfer;
pub mod memory;
pub(super) mod other_programs;
pub(super) mod time_slice;
