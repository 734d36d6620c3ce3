//! What threads and locks do, and which threads do the same.

mod cohorts;
pub(super) mod crews;
pub(super) mod holders;
pub(super) mod peers;
mod started_alike;
pub(super) mod thread_group;
mod thread_name;
pub(super) mod thread_samples;
pub(super) mod uses;
pub(super) mod worker_groups;
