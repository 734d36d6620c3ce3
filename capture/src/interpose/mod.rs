//! Records the target's synchronization operations from inside the target. A library that is put before the libc of a
//! launched command writes them into memory that is shared with longpole, at a hundredth of a trap's cost.
//!
//! [`decide`] says whether a command is recorded this way. [`Interposed`] makes the memory and the library's file, passes
//! both to the command in its environment, and empties the rings. Only this module decides how an operation is
//! recorded: an interposed process must get no probes on its C library's synchronization functions, and other processes
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
mod pauses;
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
