//! Names for addresses in the records: synchronization objects, and the calls that used them. They are found
//! while the processes are there, because that is impossible later, and stored as facts.
//!
//! `known_addresses` notices addresses that are new, `spaces` knows what each process has mapped, `namer` is the thread that puts
//! names to them. `code_namer` is another one, for the code that sampled stacks are made of: with `lock_stacks`
//! and `lock_regions` also of what lies under a lock. `poll_intervals` says when they do that.

mod code_namer;
mod jit_names;
mod known_addresses;
mod lock_regions;
mod lock_stacks;
mod namer;
mod poll_intervals;
mod spaces;

pub use code_namer::{CodeNamer, PLACES_AT_ONCE, forget_mappings};
pub use known_addresses::{Ask, KnownAddresses};
pub use lock_stacks::LockStack;
pub use namer::Namer;
pub use poll_intervals::PollIntervals;

use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

/// Names that take longer than this after the end are not waited for.
const LAST_WAIT: Duration = Duration::from_secs(60);

/// What is found until the sender is gone. Waits for it, but not for ever; `else_what` is then the case.
fn rest<T>(names: &Receiver<Vec<T>>, else_what: &str) -> Vec<T> {
    let until = Instant::now() + LAST_WAIT;
    let mut rest = Vec::new();
    loop {
        match names.recv_timeout(until.saturating_duration_since(Instant::now())) {
            Ok(names) => rest.extend(names),
            Err(RecvTimeoutError::Disconnected) => return rest,
            Err(RecvTimeoutError::Timeout) => {
                log::warn!("reading symbols takes too long: {else_what}");
                return rest;
            }
        }
    }
}
