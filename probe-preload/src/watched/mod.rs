//! Watches functions of libc: those that start programs, and those that take rights or memory away from the library.

mod caller;
pub(super) mod exec;
mod executable;
mod last_moment;
pub(super) mod restricted;
pub(super) mod seccomp;
mod watch;
