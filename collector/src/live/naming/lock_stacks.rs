//! Finds stacks that were sampled where a thread waits for a futex word, and where a thread wakes such a waiter: calls
//! on these stacks take a lock or release it. A sample has the time of the record for which it was taken.

use engine::event::{futex_of_sleeper, futex_of_wakee};
use probe_abi::{Record, SampleReason};
use rustc_hash::{FxHashMap, FxHashSet};

/// A stack at a wait for a word, or at a wake-up of a thread that waits for the word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct LockStack {
    /// The stack's number.
    pub stack: u32,
    /// The process.
    pub pid: u32,
    /// The futex word.
    pub word: u64,
    /// The stack is that of a waker.
    pub gives: bool,
}

/// Largest number of stacks in one recording.
const MOST: usize = 1 << 14;
/// Largest number of records that wait for their sample, and of samples that wait for their record; the two arrive
/// together.
const PENDING: usize = 1 << 12;

/// The thread, the time, and whether the thread wakes another one.
type Instant = (u32, u64, bool);

/// See the module.
#[derive(Debug, Default)]
pub struct LockStacks {
    words: FxHashMap<Instant, (u32, u64)>,
    samples: FxHashMap<Instant, u32>,
    told: FxHashSet<LockStack>,
    news: Vec<LockStack>,
}

impl LockStacks {
    /// Notes a record. Samples of threads that go to sleep or wake others have the stacks.
    pub fn record(&mut self, record: &Record) {
        match record {
            Record::Sample(sample) => {
                let gives = match SampleReason::from_byte(sample.reason) {
                    Some(SampleReason::Block) => false,
                    Some(SampleReason::Wake) => true,
                    _ => return,
                };
                if sample.stack == 0 {
                    return;
                }
                let at = (sample.header.tid, sample.header.time_ns, gives);
                match self.words.remove(&at) {
                    Some((pid, word)) => self.tell(sample.stack, pid, word, gives),
                    None => put(&mut self.samples, at, sample.stack),
                }
            }
            Record::Switch(switch) => {
                if let Some(futex) = futex_of_sleeper(switch) {
                    let header = &switch.header;
                    self.word((header.tid, header.time_ns, false), (header.pid, futex.word));
                }
            }
            Record::Waking(waking) => {
                if let Some(futex) = futex_of_wakee(waking) {
                    let header = &waking.header;
                    self.word((header.tid, header.time_ns, true), (waking.wakee_pid, futex.word));
                }
            }
            _ => {}
        }
    }

    fn word(&mut self, at: Instant, (pid, word): (u32, u64)) {
        match self.samples.remove(&at) {
            Some(stack) => self.tell(stack, pid, word, at.2),
            None => put(&mut self.words, at, (pid, word)),
        }
    }

    fn tell(&mut self, stack: u32, pid: u32, word: u64, gives: bool) {
        let found = LockStack { stack, pid, word, gives };
        if self.told.len() < MOST && self.told.insert(found) {
            self.news.push(found);
        }
    }

    /// Stacks that are new since the last call.
    pub fn take(&mut self) -> Vec<LockStack> {
        std::mem::take(&mut self.news)
    }
}

/// Adds a record or a sample that waits. Most records have no sample: when there are too many, all are forgotten.
fn put<T>(pending: &mut FxHashMap<Instant, T>, at: Instant, value: T) {
    if pending.len() >= PENDING {
        pending.clear();
    }
    pending.insert(at, value);
}
