//! All rings of the shared memory, as further rings beside the kernel's.
//!
//! **What a turn may promise.** The clock is read, then every ring is emptied as far as it was filled. A thread takes
//! its place before it reads the clock for the record's time, so that what is not yet there is newer than this turn's
//! clock, but for places taken and not yet filled: their times are newer than the last turn that did not see them. A
//! thread may be pre-empted right there, so the promise waits for it, though not for longer than [`PATIENCE_NS`]: a
//! stopped process must not hold up all others. What comes later than that is counted as late.

use super::ring::{Emptied, Ring, Turn};
use super::shared::Shared;
use engine::event::PendingOperation;
use probe_abi::interpose::SharedWord;
use std::sync::atomic::Ordering;

/// How long a record that is being written holds up the others.
pub(super) const PATIENCE_NS: u64 = 1_000_000_000;
/// A place that is being written for longer is looked at: its thread may be gone.
const DOUBT_NS: u64 = 20_000_000;
/// Records of one ring in one turn.
const MOST_PER_RING: u64 = 16_384;
/// Threads in one turn of which it is looked whether they live: each is a system call.
const LOOKS: usize = 64;
/// Up to so many rings all memory that they have ever used is kept.
const GENEROUS: usize = 32;
/// Operations of ended threads that are kept.
const MOST_PENDING: usize = 10_000;

/// The rings and what is known of them.
#[derive(Debug)]
pub(super) struct Rings {
    pub shared: Shared,
    rings: Vec<Ring>,
    /// The clock of the last turn.
    last_ns: u64,
    /// Where to look next whether threads live.
    next_look: usize,
    /// What threads that have ended were in the middle of.
    pending: Vec<PendingOperation>,
}

/// What a turn did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Turned {
    pub records: usize,
    /// Everything up to here has been handed over; `None`: there is more to take first.
    pub complete_to_ns: Option<u64>,
}

impl Rings {
    pub fn new(shared: Shared) -> Rings {
        Rings { shared, rings: Vec::new(), last_ns: 0, next_look: 0, pending: Vec::new() }
    }

    /// Rings that have been in use.
    pub fn count(&self) -> usize {
        self.rings.len()
    }

    /// Empties all rings. `clock` is `CLOCK_MONOTONIC`; `lives` tells of a `(pid, tid)` whether it does.
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
        let mut complete_to_ns = Some(before_ns);
        let mut total = 0;
        for (number, ring) in self.rings.iter_mut().enumerate() {
            let turn = Turn { shared: &self.shared, number, before_ns, last_ns, most: MOST_PER_RING, frugal };
            let (records, emptied) = ring.read(&turn, clock, &mut |bytes| sink(number, bytes));
            total += records;
            if let Some(since_ns) = ring.writing_since_ns
                && before_ns.saturating_sub(since_ns) > DOUBT_NS
            {
                let gone = ring.owner != 0 && !lives((ring.owner >> 32) as u32, ring.owner as u32);
                if gone || before_ns.saturating_sub(since_ns) > PATIENCE_NS {
                    ring.give_up(&turn, gone);
                }
            }
            let bound_ns = match ring.writing_since_ns {
                Some(since_ns) if before_ns.saturating_sub(since_ns) <= PATIENCE_NS => since_ns,
                _ => before_ns,
            };
            complete_to_ns = match emptied {
                Emptied::Yes => complete_to_ns.map(|to| to.min(bound_ns)),
                Emptied::More => None,
            };
        }
        self.free_some(lives);
        Turned { records: usize::try_from(total).unwrap_or(usize::MAX), complete_to_ns }
    }

    /// Rings that threads have taken since.
    fn notice_new(&mut self, next: u64) {
        let used = usize::try_from(next).unwrap_or(usize::MAX).min(self.shared.layout().rings);
        if used > self.rings.len() {
            self.rings.resize_with(used, Ring::default);
        }
    }

    /// Gives rings of threads that are gone to others. A few each time: whoever is left has their turn later.
    fn free_some(&mut self, lives: &mut dyn FnMut(u32, u32) -> bool) {
        let mut freed = false;
        for _ in 0..self.rings.len().min(LOOKS) {
            self.next_look = (self.next_look + 1) % self.rings.len();
            let number = self.next_look;
            let Some(ring) = self.rings.get_mut(number) else { return };
            let turn =
                Turn { shared: &self.shared, number, before_ns: 0, last_ns: 0, most: 0, frugal: false };
            // It may have been taken without anything written yet.
            ring.see_owner(&turn);
            if ring.owner == 0 || std::mem::take(&mut ring.active) || ring.writing_since_ns.is_some() {
                continue;
            }
            if !lives((ring.owner >> 32) as u32, ring.owner as u32) && ring.is_empty(&turn) {
                if self.pending.len() < MOST_PENDING {
                    self.pending.extend(ring.pending(&self.shared, number));
                }
                ring.free(&self.shared, number);
                freed = true;
            }
        }
        if freed {
            // Threads look for free rings from here on; they go round by themselves, this only keeps memory together.
            let next = self.shared.word(SharedWord::NEXT_RING).swap(0, Ordering::AcqRel);
            self.notice_new(next);
        }
    }

    /// Records that did not fit.
    pub fn dropped(&self) -> u64 {
        let without = self.shared.word(SharedWord::WITHOUT_RING).load(Ordering::Relaxed);
        self.rings.iter().enumerate().fold(without, |sum, (number, ring)| {
            sum.saturating_add(Ring::dropped(&self.shared, number)).saturating_add(ring.torn)
        })
    }

    /// Bytes that were no records.
    pub fn undecodable(&self) -> u64 {
        self.rings.iter().fold(0, |sum, ring| sum.saturating_add(ring.undecodable))
    }

    /// What threads are in the middle of, or were when they ended.
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
