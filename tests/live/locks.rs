//! Tests of locks: their operations, their numbers in reports, and their names.

mod by_lock;
mod launched;
mod libc;
mod names;
mod own_locks;
mod support;
