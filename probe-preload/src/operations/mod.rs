//! The wrapped functions of libc, in one file for each kind of synchronization object.

pub(super) mod barrier;
mod c11;
pub(super) mod condition;
pub(super) mod mutex;
pub(super) mod once;
pub(super) mod rwlock;
pub(super) mod semaphore;
pub(super) mod spin;
pub(super) mod thread;
