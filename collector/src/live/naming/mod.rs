//! Names for addresses in the records: synchronization objects, and the calls that used them. Names are read while
//! the processes run, since that is impossible later, and stored as facts.
//!
//! `known_addresses` notices new addresses, `spaces` knows the mappings of each process, and the thread `namer` reads
//! the names. The thread `code_namer` names the code of sampled stacks; with `lock_stacks` and `lock_regions` it also
//! finds code under locks. `poll_intervals` says when both threads read.

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

/// Longest wait for names after the end.
const LAST_WAIT: Duration = Duration::from_secs(60);

/// All names until the sender ends. Waits for `LAST_WAIT` at most, then warns with `else_what`.
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
