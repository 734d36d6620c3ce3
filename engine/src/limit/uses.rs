//! What threads and locks do in the predicted run that a limit is found in.

use super::Part;
use crate::program::{ObjectId, Program};
use crate::schedule::{Doing, Interval, Why};
use crate::time::Ticks;
use serde::Serialize;

/// A lock, or several that were first used in one place.
#[derive(Clone, Debug, PartialEq)]
pub struct LockUse {
    /// Its name; of several the one that is waited for longest.
    pub lock: String,
    /// How many locks.
    pub locks: usize,
    /// Share of the time during which a thread holds it; of several the largest.
    pub held_share: f64,
    /// Its waits are those of the recording, replayed: when it is free is not decided again.
    pub as_recorded: bool,
    /// How often a thread waits for it.
    pub waits: u64,
    /// How long threads wait for it, summed, nanoseconds.
    pub waited_ns: f64,
    /// What is computed while it is held: the functions that compute most, with their shares of that.
    pub under: Vec<Part>,
}

impl LockUse {
    /// The function that computes most while it is held.
    pub fn holder(&self) -> Option<&Part> {
        self.under.first()
    }
}

/// Threads that do the same, or one. Shares are of the predicted time, the mean of the threads; they add up to less where a
/// thread does not live as long as the program.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ThreadUse {
    /// Their names.
    #[serde(rename = "threads")]
    pub names: Vec<String>,
    /// They compute.
    pub running: f64,
    /// They want a CPU.
    pub ready: f64,
    /// They ask again and again for a lock or for what another thread does, and compute nothing.
    pub spinning: f64,
    /// They wait for a lock, asleep.
    pub lock: f64,
    /// They wait for something else.
    pub other: f64,
}

/// What the threads did: running, ready, spinning, waiting for a lock, for something else, in ticks.
#[derive(Clone, Debug)]
pub(super) struct States {
    of: Vec<[u64; 5]>,
    is_lock: Vec<bool>,
}

impl States {
    pub(super) fn new(program: &Program) -> States {
        States { of: vec![[0; 5]; program.threads.len()], is_lock: program.is_lock() }
    }

    pub(super) fn tell(&mut self, interval: Interval) {
        let is_lock = |ObjectId(object): ObjectId| self.is_lock.get(object as usize) == Some(&true);
        let place = match interval.doing {
            Doing::Nothing => return,
            Doing::Busy => 0,
            Doing::Ready => 1,
            Doing::Spinning(_) | Doing::Blocked(Why::Turn) => 2,
            Doing::Blocked(Why::Object(object)) if is_lock(object) => 3,
            Doing::Blocked(_) => 4,
        };
        if let Some(sum) = self.of.get_mut(interval.thread.0 as usize).and_then(|of| of.get_mut(place)) {
            *sum = sum.saturating_add(interval.end.0.saturating_sub(interval.start.0));
        }
    }

    /// How long threads spun, summed, ticks.
    pub(super) fn spinning(&self) -> u64 {
        self.of.iter().fold(0u64, |sum, of| sum.saturating_add(of[2]))
    }

    /// The mean of these threads, as shares of a length.
    pub(super) fn mean(&self, program: &Program, threads: &[usize], length: Ticks) -> ThreadUse {
        let whole = length.0.max(1) as f64 * threads.len().max(1) as f64;
        let mut shares = [0.0; 5];
        for of in threads.iter().filter_map(|thread| self.of.get(*thread)) {
            for (share, ticks) in shares.iter_mut().zip(of) {
                *share += *ticks as f64 / whole;
            }
        }
        let [running, ready, spinning, lock, other] = shares;
        let names = threads.iter().filter_map(|thread| program.threads.get(*thread));
        let names = names.map(|thread| thread.name.clone()).collect();
        ThreadUse { names, running, ready, spinning, lock, other }
    }
}
