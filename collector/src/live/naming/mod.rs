//! Names for addresses in the records: synchronization objects, and the calls that used them. They are found
//! while the processes are there, because that is impossible later, and stored as facts.
//!
//! `known_addresses` notices addresses that are new, `spaces` knows what each process has mapped, `namer` is the thread that puts
//! names to them. `code` is another one, for the code that sampled stacks are made of: with `lock_stacks`
//! and `lock_regions` also of what lies under a lock. `poll_intervals` says when they do that.

mod code;
mod jit_names;
mod known_addresses;
mod lock_regions;
mod lock_stacks;
mod namer;
mod poll_intervals;
mod spaces;

pub use code::{CodeNamer, PLACES_AT_ONCE, forget_mappings};
pub use known_addresses::{Ask, KnownAddresses};
pub use lock_stacks::LockStack;
pub use namer::Namer;
pub use poll_intervals::PollIntervals;
