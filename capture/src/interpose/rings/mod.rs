//! All rings of the shared memory, which are read in addition to the kernel's rings.
//!
//! **Up to when a turn is complete.** A turn reads the clock, then empties every ring as far as it is filled. A
//! thread takes its place in the ring before it reads the clock for the record's time. So records that are not
//! there yet are newer than the turn's clock. The exception are places taken and not yet filled: their records are
//! newer than the last turn that did not see them. A thread may be pre-empted right there, so completeness waits for
//! it, but no longer than [`PATIENCE_NS`]: a stopped process must not hold up all others. A record that comes
//! later than that is counted as late.

mod counts;
mod ending;

use super::cost::{OperationCosts, Sums};
use super::memory_pool::MemoryPool;
use super::ring_memory::give_idle_back;
use super::shared::Shared;
use super::thread_ring_reader::{Emptied, GENEROUS, Ring, Turn};
use crate::probe::PreloadCost;
use engine::event::PendingOperation;
use probe_abi::interpose::SharedWord;
use rustc_hash::FxHashMap;
use std::sync::atomic::Ordering;

/// How long a record that is being written may delay all other records, ns.
pub(super) const PATIENCE_NS: u64 = 1_000_000_000;
/// After this time the thread of a place that is still unfilled is checked: it may be gone.
const DOUBT_NS: u64 = 20_000_000;
/// Largest number of records read from one ring in one turn.
const MOST_PER_RING: u64 = 32_768;
/// Largest number of unfinished operations of ended threads that are kept.
const MOST_PENDING: usize = 10_000;

/// The rings, and the reader's state for each.
#[derive(Debug)]
pub(super) struct Rings {
    pub shared: Shared,
    /// The memory that the rings share.
    pool: MemoryPool,
    /// Share of a thread's time that recording the thread may cost; `None`: no limit.
    share: Option<f64>,
    rings: Vec<Ring>,
    /// The ring of each thread, `pid << 32 | tid`.
    by_owner: FxHashMap<u64, usize>,
    /// Threads that have ended according to the kernel and whose rings are not freed yet, with the number of tries.
    ended: Vec<(u64, u32)>,
    /// The clock of the last turn.
    last_ns: u64,
    /// The ring whose thread was checked last for being alive.
    next_look: usize,
    /// Operations that ended threads were in the middle of.
    pending: Vec<PendingOperation>,
    /// The recording's cost to the threads.
    costs: OperationCosts,
    /// Operations not recorded on purpose and their cost, as of [`Rings::left_out_seen_ns`]; other fields are not used.
    left_out_inside: PreloadCost,
    left_out_seen_ns: u64,
}

/// The result of a turn.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Turned {
    pub records: usize,
    /// All records up to here have been passed on; `None`: rings still hold records.
    pub complete_to_ns: Option<u64>,
    /// Assumed cost of the operations since the last turn, nanoseconds.
    pub cost_ns: f64,
    /// Number of threads that did operations since the last turn.
    pub busy: usize,
}

impl Rings {
    pub fn new(shared: Shared, share: Option<f64>) -> Rings {
        let rather = u64::from(share.is_some());
        shared.word(SharedWord::RATHER_LEAVE_OUT).store(rather, Ordering::Relaxed);
        let pool = MemoryPool::of_all(&shared);
        Rings {
            shared,
            pool,
            share,
            rings: Vec::new(),
            by_owner: FxHashMap::default(),
            ended: Vec::new(),
            last_ns: 0,
            next_look: 0,
            pending: Vec::new(),
            costs: OperationCosts::new(),
            left_out_inside: PreloadCost::default(),
            left_out_seen_ns: 0,
        }
    }

    /// Limits the memory of all rings together to this many bytes. If they use more already, memory is returned as
    /// records are read.
    pub fn may_use(&mut self, bytes: u64) {
        self.pool.becomes(&self.shared, bytes);
    }

    /// Bytes that all rings use now.
    pub fn used_bytes(&self) -> u64 {
        self.pool.used_bytes(&self.shared)
    }

    /// Rings that have been in use.
    pub fn count(&self) -> usize {
        self.rings.len()
    }

    /// Empties all rings. `clock` is `CLOCK_MONOTONIC`; `lives`: whether a `(pid, tid)` is alive.
    pub fn drain(
        &mut self,
        clock: &mut dyn FnMut() -> u64,
        lives: &mut dyn FnMut(u32, u32) -> bool,
        sink: &mut dyn FnMut(usize, &[u8]),
    ) -> Turned {
        let before_ns = clock();
        let last_ns = std::mem::replace(&mut self.last_ns, before_ns);
        let next = self.shared.word(SharedWord::NEXT_RING).load(Ordering::Acquire);
        self.notice_new(next);
        let frugal = self.rings.len() > GENEROUS;
        let short = self.pool.is_short(&self.shared);
        let last = self.shared.word(SharedWord::RECORDING).load(Ordering::Relaxed) == 0;
        let mut complete_to_ns = Some(before_ns);
        let (mut total, mut costs) = (0, Sums::default());
        let (mut cost_ns, mut busy) = (0.0, 0);
        for (number, ring) in self.rings.iter_mut().enumerate() {
            let turn = Turn {
                shared: &self.shared,
                number,
                before_ns,
                last_ns,
                most: MOST_PER_RING,
                share: self.share,
                frugal,
                short,
                last,
            };
            let (records, emptied) = ring.read(&turn, clock, &mut |bytes| sink(number, bytes));
            if ring.is_new {
                (ring.is_new, ring.looked_ns) = (false, before_ns);
                self.by_owner.insert(ring.owner, number);
            }
            total += records;
            cost_ns += ring.turn_cost_ns;
            busy += usize::from(ring.turn_cost_ns > 0.0);
            if records > 0 {
                costs = costs.plus(ring.take_costs(&turn));
            }
            if let Some(since_ns) = ring.writing_since_ns
                && before_ns.saturating_sub(since_ns) > DOUBT_NS
            {
                let gone = ring.owner != 0 && !lives((ring.owner >> 32) as u32, ring.owner as u32);
                if gone || before_ns.saturating_sub(since_ns) > PATIENCE_NS {
                    ring.give_up(&turn, gone);
                }
            }
            if let Some(since_ns) = ring.burst_since_ns
                && before_ns.saturating_sub(since_ns) > DOUBT_NS
                && (last || ring.owner != 0 && !lives((ring.owner >> 32) as u32, ring.owner as u32))
            {
                let turn = Turn { last: true, ..turn };
                total += ring.give_up_folding(&turn, &mut |bytes| sink(number, bytes));
            }
            let open_burst = ring.burst_since_ns;
            let open_burst = open_burst.filter(|since_ns| before_ns.saturating_sub(*since_ns) <= PATIENCE_NS);
            let bound_ns = match ring.writing_since_ns {
                Some(since_ns) if before_ns.saturating_sub(since_ns) <= PATIENCE_NS => since_ns,
                _ => before_ns,
            };
            let bound_ns = open_burst.map_or(bound_ns, |since_ns| since_ns.min(bound_ns));
            complete_to_ns = match emptied {
                Emptied::Yes => complete_to_ns.map(|to| to.min(bound_ns)),
                Emptied::More => None,
            };
        }
        if self.pool.is_nearly_empty(&self.shared) {
            (0..self.rings.len()).for_each(|number| give_idle_back(&self.shared, number));
        }
        self.costs.add(costs);
        self.see_left_out(before_ns);
        self.free_ended(lives);
        self.free_some(before_ns, lives);
        Turned { records: usize::try_from(total).unwrap_or(usize::MAX), complete_to_ns, cost_ns, busy }
    }

    /// Creates the reader's state for rings that threads have taken since.
    fn notice_new(&mut self, next: u64) {
        let used = usize::try_from(next).unwrap_or(usize::MAX).min(self.shared.layout().rings);
        if used > self.rings.len() {
            self.rings.resize_with(used, Ring::default);
        }
    }
}

#[cfg(test)]
mod tests;
