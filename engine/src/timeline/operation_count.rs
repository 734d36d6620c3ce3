//! Counts how many operations of a program the records will become: few records may take long to analyse.
//!
//! If threads take a mutex in turns, thousands of its acquisitions are recorded as one sum ([`probe_abi::Burst`]).

use probe_abi::{OperationFlags, Record};
use rustc_hash::FxHashMap;

/// Cost of one acquisition with its release, in records of other kinds: two operations, and computing before each. Measured:
/// 44,000 records with 200,000 acquisitions take as long as 450,000 records of switches.
const RECORDS_FOR_A_PAIR: u64 = 2;

/// Counts over a set of records.
#[derive(Clone, Debug, Default)]
pub(super) struct OperationCount {
    records: u64,
    /// Objects by process and address.
    objects: FxHashMap<(u32, u64), Object>,
}

/// A lock that has bursts or other operations.
#[derive(Clone, Copy, Debug)]
struct Object {
    /// The first thread that used the object.
    user: u32,
    /// Whether another thread used the object, too.
    is_shared: bool,
    /// Whether a burst took the object for writing.
    is_written: bool,
    /// Acquisitions in bursts.
    pairs: u64,
}

impl OperationCount {
    pub(super) fn count(&mut self, records: &[Record]) {
        self.records += records.len() as u64;
        for record in records {
            match record {
                Record::Burst(burst) => {
                    let is_written = burst.flags & OperationFlags::READS == 0;
                    let object = self.used(burst.header.pid, burst.object, burst.header.tid);
                    object.is_written |= is_written;
                    object.pairs = object.pairs.saturating_add(burst.count.into());
                }
                Record::Operation(operation) => {
                    self.used(operation.header.pid, operation.object, operation.header.tid);
                }
                _ => {}
            }
        }
    }

    fn used(&mut self, pid: u32, address: u64, thread: u32) -> &mut Object {
        let new = Object { user: thread, is_shared: false, is_written: false, pairs: 0 };
        let object = self.objects.entry((pid, address)).or_insert(new);
        object.is_shared |= object.user != thread;
        object
    }

    /// Estimated analysis cost of the records, in records of other kinds.
    pub(super) fn cost(&self) -> f64 {
        self.records as f64 * self.for_each_record()
    }

    /// Estimated analysis cost per record, at least 1. Bursts on locks that delay nobody count nothing: each becomes one pair
    /// of operations (`expand_bursts.rs`).
    pub(super) fn for_each_record(&self) -> f64 {
        let delaying = self.objects.values().filter(|object| object.is_shared && object.is_written);
        let pairs = delaying.fold(0u64, |sum, object| sum.saturating_add(object.pairs));
        1.0 + pairs.saturating_mul(RECORDS_FOR_A_PAIR) as f64 / self.records.max(1) as f64
    }
}
