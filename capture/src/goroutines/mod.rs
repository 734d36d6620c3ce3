//! Looks at the goroutines of Go programs: what each does and waits for, read from Go's runtime in the program's memory.
//!
//! Go's runtime decides which goroutine runs, so the kernel sees threads that sleep and wake, but not what goroutines
//! wait for. Its list of goroutines (`runtime.allgs`) has for each the state, the reason of a wait, and the stack, which
//! has frame pointers. Nothing is written to the program, and it is not stopped: a goroutine may change while it is read,
//! so waits are read twice.

mod counts;
mod look;
mod memory;
mod program;

pub use counts::Counts;
pub use program::{GoProgram, NotLooked};
