//! Sums over all rings.

use super::super::thread_ring_reader::{GENEROUS, Ring};
use super::{MOST_PENDING, Rings};
use crate::probe::PreloadCost;
use engine::event::PendingOperation;
use probe_abi::interpose::{RingWord, SharedWord};
use std::sync::atomic::Ordering;

/// How often the counts of operations that were not recorded on purpose are summed, if there are more than a few rings.
const LEFT_OUT_EVERY_NS: u64 = 500_000_000;

impl Rings {
    /// Records that did not fit.
    pub fn dropped(&self) -> u64 {
        let without = self.shared.word(SharedWord::WITHOUT_RING).load(Ordering::Relaxed);
        self.rings.iter().enumerate().fold(without, |sum, (number, ring)| {
            sum.saturating_add(ring.dropped(&self.shared, number)).saturating_add(ring.torn)
        })
    }

    /// Dropped records for which there was no memory, although their ring had room.
    pub fn short(&self) -> u64 {
        self.sum(RingWord::SHORT)
    }

    /// Operations of threads alone in their process that were not recorded, to stay within the budget.
    pub fn left_out(&self) -> u64 {
        self.sum(RingWord::LEFT_OUT)
    }

    /// Operations of uncontended pairs that were counted instead of recorded, since there was hardly any room for records.
    pub fn counted(&self) -> u64 {
        self.sum(RingWord::COUNTED)
    }

    /// Operations of threads that may neither read the clock nor call the kernel: they were only counted.
    pub fn forbidden(&self) -> u64 {
        let without = self.shared.word(SharedWord::FORBIDDEN).load(Ordering::Relaxed);
        self.sum(RingWord::FORBIDDEN).saturating_add(without)
    }

    /// The sum of a counter of all rings.
    fn sum(&self, word: usize) -> u64 {
        let counter = |number| Ring::counter(&self.shared, number, word);
        (0..self.rings.len()).map(counter).fold(0, u64::saturating_add)
    }

    /// Number and cost of operations recorded so far, and of those not recorded on purpose as of the last sum. The cost
    /// is what the target's threads spent.
    pub fn cost(&self) -> PreloadCost {
        let (recorded, recorded_ns) = self.costs.total();
        PreloadCost { recorded, recorded_ns, ..self.left_out_inside }
    }

    /// Sums the counts of operations not recorded on purpose over all rings. With many rings this is done rarely.
    pub(super) fn see_left_out(&mut self, now_ns: u64) {
        let soon = now_ns.saturating_sub(self.left_out_seen_ns) < LEFT_OUT_EVERY_NS;
        if soon && self.rings.len() > GENEROUS {
            return;
        }
        self.left_out_seen_ns = now_ns;
        let took_ns = |number| Ring::left_out_ns(&self.shared, number);
        self.left_out_inside = PreloadCost {
            left_out: self.left_out(),
            left_out_ns: (0..self.rings.len()).map(took_ns).fold(0, u64::saturating_add),
            ..PreloadCost::default()
        };
    }

    /// Pieces of a ring that could not be records.
    pub fn undecodable(&self) -> u64 {
        self.rings.iter().fold(0, |sum, ring| sum.saturating_add(ring.undecodable))
    }

    /// Operations that threads have begun and not finished, or had not finished when they ended.
    pub fn take_pending(&mut self) -> Vec<PendingOperation> {
        let mut pending = std::mem::take(&mut self.pending);
        for (number, ring) in self.rings.iter().enumerate() {
            if pending.len() < MOST_PENDING {
                pending.extend(ring.pending(&self.shared, number));
            }
        }
        pending.sort_by_key(|operation| (operation.began_ns, operation.tid));
        pending
    }
}
