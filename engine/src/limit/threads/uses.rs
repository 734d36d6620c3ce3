//! What threads and locks do in the predicted run, as rows for tables.

use crate::limit::FunctionShare;
use crate::program::{ObjectId, Program};
use crate::schedule::{Interval, SimulatedState, Why};
use crate::time::Ticks;
use rustc_hash::FxHashMap;
use serde::Serialize;

/// A lock, or several locks that were first used in one place.
#[derive(Clone, Debug, PartialEq)]
pub struct LockUse {
    /// The lock's name; of several locks the name of the one with the longest waits.
    pub lock: String,
    /// Number of locks.
    pub locks: usize,
    /// Share of the time during which a thread holds the lock; of several locks the largest share.
    pub held_share: f64,
    /// The lock's waits are replayed as recorded: the simulation does not decide when the lock is free.
    pub as_recorded: bool,
    /// Number of waits for the lock.
    pub waits: u64,
    /// Sum of the threads' waits for the lock, nanoseconds.
    pub waited_ns: f64,
    /// The functions that compute most while the lock is held, with their shares of all computing under the lock.
    pub under: Vec<FunctionShare>,
}

impl LockUse {
    /// The function that computes most while the lock is held.
    pub fn holder(&self) -> Option<&FunctionShare> {
        self.under.first()
    }
}

/// One thread, or several threads that do the same. Shares are of the predicted time and are the mean of the threads.
/// They add up to less than 1 if a thread does not live as long as the program.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ThreadUse {
    /// Their names.
    #[serde(rename = "threads")]
    pub names: Vec<String>,
    /// The threads compute.
    pub running: f64,
    /// The threads are runnable: they wait for a CPU.
    pub ready: f64,
    /// The threads spin: they check again and again for a lock or for another thread, and compute nothing.
    pub spinning: f64,
    /// The threads wait for a lock, asleep.
    pub lock: f64,
    /// The threads wait for something else.
    pub other: f64,
}

/// States of each thread in ticks: running, ready, spinning, waiting for a lock, waiting for something else.
#[derive(Clone, Debug)]
pub(in crate::limit) struct States {
    of: Vec<[u64; 5]>,
    is_lock: Vec<bool>,
    /// How long each thread waits for each lock, asleep, ticks.
    waits: FxHashMap<(u32, ObjectId), u64>,
}

impl States {
    pub(in crate::limit) fn new(program: &Program) -> States {
        let of = vec![[0; 5]; program.threads.len()];
        States { of, is_lock: program.is_lock(), waits: FxHashMap::default() }
    }

    pub(in crate::limit) fn tell(&mut self, interval: Interval) {
        let is_lock = |ObjectId(object): ObjectId| self.is_lock.get(object as usize) == Some(&true);
        let place = match interval.doing {
            SimulatedState::Nothing => return,
            SimulatedState::Busy => 0,
            SimulatedState::Ready => 1,
            SimulatedState::Spinning(_) | SimulatedState::Blocked(Why::Turn) => 2,
            SimulatedState::Blocked(Why::Object(object)) if is_lock(object) => 3,
            SimulatedState::Blocked(_) => 4,
        };
        let length = interval.end.0.saturating_sub(interval.start.0);
        if let Some(sum) = self.of.get_mut(interval.thread.0 as usize).and_then(|of| of.get_mut(place)) {
            *sum = sum.saturating_add(length);
        }
        if let (3, SimulatedState::Blocked(Why::Object(object))) = (place, interval.doing) {
            let sum = self.waits.entry((interval.thread.0, object)).or_insert(0);
            *sum = sum.saturating_add(length);
        }
    }

    /// How long a thread waits for a lock, asleep, ticks.
    pub(in crate::limit) fn waited(&self, thread: usize, lock: ObjectId) -> u64 {
        let thread = u32::try_from(thread).unwrap_or(u32::MAX);
        self.waits.get(&(thread, lock)).copied().unwrap_or(0)
    }

    /// Time for which threads spun, summed, ticks.
    pub(in crate::limit) fn spinning(&self) -> u64 {
        self.of.iter().fold(0u64, |sum, of| sum.saturating_add(of[2]))
    }

    /// The mean of these threads' states, as shares of `length`.
    pub(in crate::limit) fn mean(&self, program: &Program, threads: &[usize], length: Ticks) -> ThreadUse {
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
