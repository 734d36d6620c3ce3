//! Names of threads, functions and synchronization objects, and what they mean.

pub(crate) mod awaited_names;
pub(super) mod function_origin;
pub(super) mod lock_names;
pub(crate) mod names;
pub(super) mod object_meaning;
pub(super) mod occurrences;
