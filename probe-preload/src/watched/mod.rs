//! Functions of libc that are watched: programs that start, and calls that take something away from the library.

mod caller;
pub(super) mod exec;
mod executable;
mod last_moment;
pub(super) mod restricted;
pub(super) mod seccomp;
mod watch;
