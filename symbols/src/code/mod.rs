//! Machine code: where a function ends, what its instructions do with memory, and how its caller is found.

mod atomic_access;
mod body;
mod exits;
mod instructions;
mod landing_pads;
mod libc_exit_points;
mod lock_regions;
mod memory_access;
mod probeable;
mod unknown_exits;
mod unwind;
mod unwind_rows;
mod unwind_rules;
mod wait_loops;
mod wait_places;
mod wait_values;

pub use atomic_access::changed_atomically;
pub use exits::{Analysis, Exits, analyse};
pub use lock_regions::{LockCall, LockRegions, lock_regions};
pub use memory_access::{MemoryAccess, last_access};
pub use unknown_exits::UnknownExits;
pub use unwind::{LandingPads, UnwindFacts, UnwindTables};
pub use unwind_rows::{FrameAt, RowsTold, Rule, Saved, UnwindRows};
pub use wait_loops::{Callee, WaitLoop, wait_loops};

pub(crate) use exits::Entry;
pub(crate) use instructions::Walker;
pub(crate) use libc_exit_points::{Bounds, exit_points};
pub(crate) use probeable::{is_stepped_nop, probeable_nop};
pub(crate) use wait_places::WaitPlaces;
