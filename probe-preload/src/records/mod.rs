//! Writes operations as records into the thread's ring.

pub(super) mod burst;
mod place;
pub(super) mod ring;
pub(super) mod word;
