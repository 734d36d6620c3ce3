//! All rings of the shared memory: further rings in addition to the kernel's.
//!
//! **What a turn may promise.** The clock is read, then every ring is emptied as far as it was filled. A
//! thread takes its place before it reads the clock for the record's time, so records that are not yet there
//! are newer than this turn's clock. The exception are places taken and not yet filled: their times are newer
//! than the last turn that did not see them. A thread may be pre-empted right there, so the promise waits for
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

/// How long a record that is being written holds up the others.
pub(super) const PATIENCE_NS: u64 = 1_000_000_000;
/// A place that is being written for longer is looked at: its thread may be gone.
const DOUBT_NS: u64 = 20_000_000;
/// Records of one ring in one turn.
const MOST_PER_RING: u64 = 32_768;
/// Operations of ended threads that are kept.
const MOST_PENDING: usize = 10_000;

/// The rings and what is known of them.
#[derive(Debug)]
pub(super) struct Rings {
    pub shared: Shared,
    /// The memory that they may use together.
    pool: MemoryPool,
    /// What recording a thread may cost of its time; `None`: no limit.
    share: Option<f64>,
    rings: Vec<Ring>,
    /// Which ring a thread has.
    by_owner: FxHashMap<u64, usize>,
    /// Threads that the kernel says have ended, and whose rings have not yet been freed; how often that was tried.
    ended: Vec<(u64, u32)>,
    /// The clock of the last turn.
    last_ns: u64,
    /// Where to look next whether threads live.
    next_look: usize,
    /// What threads that have ended were in the middle of.
    pending: Vec<PendingOperation>,
    /// What recording has cost the threads.
    costs: OperationCosts,
    /// Operations left out, and what that took, as of [`Rings::left_out_seen_ns`]; the rest is not used.
    left_out_inside: PreloadCost,
    left_out_seen_ns: u64,
}

/// What a turn did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Turned {
    pub records: usize,
    /// All records up to here have been passed on; `None`: there are more to take first.
    pub complete_to_ns: Option<u64>,
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

    /// All rings together may use this many bytes from now on. If they have more already, it is returned as
    /// it is read.
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
        Turned { records: usize::try_from(total).unwrap_or(usize::MAX), complete_to_ns }
    }

    /// Rings that threads have taken since.
    fn notice_new(&mut self, next: u64) {
        let used = usize::try_from(next).unwrap_or(usize::MAX).min(self.shared.layout().rings);
        if used > self.rings.len() {
            self.rings.resize_with(used, Ring::default);
        }
    }
}

#[cfg(test)]
mod tests;
