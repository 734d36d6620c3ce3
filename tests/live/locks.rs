//! Locks: their operations, their numbers in reports and what they are called.

mod by_lock;
mod launched;
mod libc;
mod names;
mod own_locks;
mod support;
