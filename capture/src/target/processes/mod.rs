//! Processes as /proc shows them: their identity, their threads' states, the files that they have mapped.

mod awaited_thread;
pub(super) mod c_libraries;
pub(super) mod facts;
pub(super) mod invoked_path;
pub(super) mod linked_libraries;
pub(crate) mod listening;
pub(super) mod maps;
mod moved_text;
pub(super) mod named;
pub(super) mod namespace;
mod proc_dir;
pub(super) mod proc_text;
pub(super) mod process;
