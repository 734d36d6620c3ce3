//! Changes that a person can make to a program, what each gains, and their words.

mod beside_others;
mod describe;
mod fewer_threads;
pub(super) mod fixes;
mod more_threads;
pub(super) mod top_functions;
