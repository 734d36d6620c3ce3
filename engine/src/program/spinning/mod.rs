//! Threads that compute only to wait: spinning, polling, ranks of MPI, spin locks, and cache lines that several threads use.

pub(super) mod busy_wait;
mod line_sharing;
pub(super) mod mpi;
pub(super) mod shared_lines;
mod spin_locks;
pub(super) mod spins;
