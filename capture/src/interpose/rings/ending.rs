//! Rings of threads that have ended: finds them and frees them for other threads.

use super::super::thread_ring_reader::Turn;
use super::{MOST_PENDING, Rings};
use probe_abi::interpose::SharedWord;
use std::sync::atomic::Ordering;

/// How often longpole checks whether an idle thread is still alive, in case the kernel's record of its end was lost,
/// ns.
pub(super) const LOOK_EVERY_NS: u64 = 2_000_000_000;
/// Number of threads that are checked in one turn: each check is one or a few system calls.
const LOOKS: usize = 16;
/// Number of threads that are checked in one turn when no unused ring remains.
const LOOKS_WHEN_SCARCE: usize = 64;
/// Number of turns in which freeing the ring of an ended thread is tried before the periodic checks take over.
pub(super) const TRIES: u32 = 20;

impl Rings {
    /// Notes that a thread has ended according to the kernel's records: it writes nothing more.
    pub fn thread_ended(&mut self, pid: u32, tid: u32) {
        if self.ended.len() < self.shared.layout().rings {
            self.ended.push((u64::from(pid) << 32 | u64::from(tid), 0));
        }
    }

    /// Frees rings of threads that have ended. Whether a thread is gone is checked all the same: when a thread other than
    /// the leader runs a new program, the leader ends and that thread goes on under its ids, with its own ring.
    pub(super) fn free_ended(&mut self, lives: &mut dyn FnMut(u32, u32) -> bool) {
        let mut freed = false;
        for (owner, tries) in std::mem::take(&mut self.ended) {
            let Some(&number) = self.by_owner.get(&owner) else { continue };
            if !lives((owner >> 32) as u32, owner as u32) && self.free(number) {
                freed = true;
            } else if tries < TRIES {
                // The thread has not quite ended, or its ring still has records.
                self.ended.push((owner, tries + 1));
            }
        }
        if freed {
            self.reuse();
        }
    }

    /// Frees the ring of a thread that has ended, if everything has been read; `false`: not yet.
    fn free(&mut self, number: usize) -> bool {
        let Some(ring) = self.rings.get_mut(number) else { return false };
        let turn = Turn::looking(&self.shared, number);
        if !ring.is_empty(&turn) {
            return false;
        }
        if self.pending.len() < MOST_PENDING {
            self.pending.extend(ring.pending(&self.shared, number));
        }
        if self.by_owner.get(&ring.owner) == Some(&number) {
            self.by_owner.remove(&ring.owner);
        }
        ring.free(&self.shared, number);
        true
    }

    /// Makes threads search for free rings from the first one on, so that the used memory stays together.
    fn reuse(&mut self) {
        let next = self.shared.word(SharedWord::NEXT_RING).swap(0, Ordering::AcqRel);
        self.notice_new(next);
    }

    /// Checks whether threads live, in case the kernel's record of an end was lost. A few in each turn; the next turn
    /// goes on after them.
    pub(super) fn free_some(&mut self, now_ns: u64, lives: &mut dyn FnMut(u32, u32) -> bool) {
        let scarce = self.rings.len() == self.shared.layout().rings;
        let mut looks = if scarce { LOOKS_WHEN_SCARCE } else { LOOKS };
        let mut freed = false;
        for _ in 0..self.rings.len() {
            self.next_look = (self.next_look + 1) % self.rings.len();
            let number = self.next_look;
            let Some(ring) = self.rings.get_mut(number) else { return };
            let turn = Turn::looking(&self.shared, number);
            if std::mem::take(&mut ring.active) {
                ring.looked_ns = now_ns;
            }
            if now_ns.saturating_sub(ring.looked_ns) < LOOK_EVERY_NS || ring.writing_since_ns.is_some() {
                continue;
            }
            ring.looked_ns = now_ns;
            // A thread may have taken the ring and written nothing yet.
            ring.see_owner(&turn);
            if ring.owner == 0 {
                continue;
            }
            if !lives((ring.owner >> 32) as u32, ring.owner as u32) {
                freed |= self.free(number);
            }
            looks -= 1;
            if looks == 0 {
                break;
            }
        }
        if freed {
            self.reuse();
        }
    }
}
