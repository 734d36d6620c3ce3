//! Rings of threads that have ended: they are found, and others get them.

use super::super::thread_ring_reader::Turn;
use super::{MOST_PENDING, Rings};
use probe_abi::interpose::SharedWord;
use std::sync::atomic::Ordering;

/// A thread that does nothing is looked for so often: the kernel's word that it has ended got lost at most.
pub(super) const LOOK_EVERY_NS: u64 = 2_000_000_000;
/// Threads in one turn that are looked for: each is a system call, or a few.
const LOOKS: usize = 16;
/// The same when no unused ring is left.
const LOOKS_WHEN_SCARCE: usize = 64;
/// Turns in which a ring of an ended thread is to be freed, before that is left to those looks.
pub(super) const TRIES: u32 = 20;

impl Rings {
    /// A thread has ended, as the kernel's records say: it writes nothing more.
    pub fn thread_ended(&mut self, pid: u32, tid: u32) {
        if self.ended.len() < self.shared.layout().rings {
            self.ended.push((u64::from(pid) << 32 | u64::from(tid), 0));
        }
    }

    /// Gives rings of threads that have ended to others. Whether they are gone is looked at all the same: a thread that
    /// runs a new program has the ids of one that has ended for it, and its own ring.
    pub(super) fn free_ended(&mut self, lives: &mut dyn FnMut(u32, u32) -> bool) {
        let mut freed = false;
        for (owner, tries) in std::mem::take(&mut self.ended) {
            let Some(&number) = self.by_owner.get(&owner) else { continue };
            if !lives((owner >> 32) as u32, owner as u32) && self.free(number) {
                freed = true;
            } else if tries < TRIES {
                // It is on its way out, or something is still in there.
                self.ended.push((owner, tries + 1));
            }
        }
        if freed {
            self.reuse();
        }
    }

    /// Frees a ring of a thread that is gone, if everything has been read.
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

    /// Threads look for free rings from the first one on: they would go round by themselves, this keeps memory together.
    fn reuse(&mut self) {
        let next = self.shared.word(SharedWord::NEXT_RING).swap(0, Ordering::AcqRel);
        self.notice_new(next);
    }

    /// Looks whether threads live, in case the kernel's word that they have ended got lost. A few each time:
    /// the others have their turn later.
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
            // It may have been taken without anything written yet.
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
