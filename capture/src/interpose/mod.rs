//! Recording the target's synchronization operations from inside it: where a launched command can have a library put
//! before its libc, that library writes them into memory that is shared with us, at a hundredth of a trap's cost.
//!
//! [`decide`] says whether it can; [`Interposed`] makes the memory and the library's file, tells the command
//! about them, and empties the rings. This is the one place that decides how an operation is recorded: a
//! process that is interposed must get no probes on its C library's synchronization functions, and the others
//! no library.

mod choice;
mod command;
mod cost;
mod doorbell;
mod foreign;
mod library;
mod library_file;
mod memory_pool;
mod open_burst;
mod ring_memory;
mod rings;
mod self_test;
mod session;
mod shared;
mod thread_ring_reader;

pub use choice::{Choice, decide};
pub use command::{InterposeMode, c_library};
pub use doorbell::Doorbell;
pub use foreign::cannot_come_up;
pub use library::has_library;
pub use self_test::check_library;
pub use session::{InterposeError, Interposed};
