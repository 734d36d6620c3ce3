//! Finds what is at a place of a binary: function, source line, inlined calls, variable.

mod dwarf;
mod go_runtime;
mod locate;
mod located;
mod locator;
mod members;
pub(crate) mod packed;
mod split;
mod string_table;
mod variables;

pub use go_runtime::{GoRuntime, GoroutineMembers};
pub use locate::{locate, locate_functions};
pub use located::Located;
pub use locator::Locator;
pub use variables::Variables;

pub(crate) use dwarf::DebugInformation;
pub(crate) use locate::locate_with;
pub(crate) use variables::Named;
