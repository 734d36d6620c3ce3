//! The effects of operations, a file for each kind of synchronization object.

pub(super) mod barrier;
pub(super) mod condition;
pub(super) mod device;
pub(super) mod lifecycle;
pub(super) mod mutex;
pub(super) mod once;
pub(super) mod queue;
pub(super) mod read_write;
pub(super) mod recorded_wakes;
pub(super) mod semaphore;
pub(super) mod spin;
pub(super) mod table;
pub(super) mod timer;
