//! Probes on functions of the target and of its C libraries: places them, holds them in a separate process, and removes
//! them.

mod attacher;
mod batched_attach;
mod function_groups;
mod function_links;
pub(crate) mod function_probes;
mod libc_files;
mod libc_points;
mod link_keeper;
mod link_process;
pub(crate) mod lock_probes;
pub(crate) mod open_calls;
mod programs;
pub(crate) mod single_links;
mod stale_probes;
mod trial;

pub use attacher::Attacher;
pub use libc_files::{LibcFile, LibcProbes};
pub use link_process::hold_links;
pub use trial::{AT_ONCE, Calls, count_calls};

pub(crate) use function_probes::FunctionProbes;
pub(crate) use link_keeper::LinkKeeper;
pub(crate) use lock_probes::LockProbes;
pub(crate) use programs::Programs;
