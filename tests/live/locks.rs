//! Locks: their operations, their numbers in reports and what they are called.

mod by_lock;
mod names;
mod own_locks;
