//! Takes places in a thread's ring, and fills them with records.

use crate::records::ring::Own;
use crate::records::word::{add_one, count, will_write};
use core::sync::atomic::{Ordering, compiler_fence};
use probe_abi::interpose::{RECORD_WORDS, RingWord, SharedWord, is_short, may_take};
use probe_abi::{Context, Header, Kind};

/// When a place is written, the place at this distance ahead is prefetched. The ring reader has left that place in
/// another CPU's cache.
const PREPARED: u64 = 4;

/// The second word of every record of this kind, without the record's number.
const fn fixed(kind: Kind) -> u64 {
    (Header::NO_CPU as u64) << 32 | (kind as u64) << 48 | (Context::Task as u64) << 56
}

/// A place in the ring that has been taken.
pub struct Place {
    number: u64,
}

impl Own {
    /// Takes the next place. `None`: there is no room, and the record's number will be missing.
    #[inline(always)]
    pub fn take_place(&self) -> Option<Place> {
        let head = self.word(RingWord::HEAD);
        let next = head.load(Ordering::Relaxed);
        if next >= self.word(RingWord::PAID_TO).load(Ordering::Relaxed) && !self.pays_for(next) {
            return None;
        }
        let number = add_one(head);
        // The place must be taken before the clock is read. A reader that sees a free place then knows that the record
        // in it will be newer.
        compiler_fence(Ordering::SeqCst);
        Some(Place { number })
    }

    /// Gets the memory for the piece that begins with this place. `false`: there is no memory, or the ring is full.
    #[cold]
    #[inline(never)]
    fn pays_for(&self, place: u64) -> bool {
        let layout = self.shared.layout;
        let paid_to = self.word(RingWord::PAID_TO);
        let paid = paid_to.load(Ordering::Relaxed);
        let tail = self.word(RingWord::TAIL).load(Ordering::Acquire);
        let used = place.wrapping_sub(tail);
        self.rings_for_room(place, used);
        let Some(end) = layout.piece_end(place, tail) else { return false };
        let (word, bit) = layout.idle(place);
        let idle = self.word(word);
        let free = self.shared.word(SharedWord::FREE);
        let was_idle =
            idle.load(Ordering::Relaxed) & bit != 0 && idle.fetch_and(!bit, Ordering::AcqRel) & bit != 0;
        if !was_idle {
            let (in_use, left) = (used / layout.piece_records(), free.load(Ordering::Relaxed) as i64);
            if is_short(in_use, left) {
                self.shared.ring();
            }
            if !may_take(in_use, left) {
                count(self.word(RingWord::SHORT));
                self.leaves_out_if_it_may();
                return false;
            }
            free.fetch_sub(1, Ordering::AcqRel);
        }
        if paid_to.compare_exchange(paid, end, Ordering::Relaxed, Ordering::Relaxed).is_err() {
            // A signal handler in between has got memory for the same piece, so this memory is returned.
            free.fetch_add(1, Ordering::AcqRel);
        }
        true
    }

    /// Whether there will soon be no room for operations with a waiter. Then operations without a waiter should only be
    /// counted.
    #[inline(never)]
    pub fn is_pressed(&self) -> bool {
        if self.shared.word(SharedWord::RATHER_LEAVE_OUT).load(Ordering::Relaxed) != 1 {
            return false;
        }
        let layout = self.shared.layout;
        let next = self.word(RingWord::HEAD).load(Ordering::Relaxed);
        let used = next.wrapping_sub(self.word(RingWord::TAIL).load(Ordering::Acquire));
        if layout.nearly_full(used) {
            return true;
        }
        // The memory for the next record has not been taken yet.
        let (word, bit) = layout.idle(next);
        let free = self.shared.word(SharedWord::FREE).load(Ordering::Relaxed) as i64;
        next >= self.word(RingWord::PAID_TO).load(Ordering::Relaxed)
            && self.word(word).load(Ordering::Relaxed) & bit == 0
            && !may_take(used / layout.piece_records(), free)
    }

    /// Signals the doorbell if it is time to empty this ring.
    fn rings_for_room(&self, place: u64, used: u64) {
        let layout = self.shared.layout;
        if !layout.rings_at(place, used) {
            return;
        }
        self.shared.ring();
        if layout.nearly_full(used) {
            self.leaves_out_if_it_may();
        }
    }

    /// Lets this thread stop recording some operations on purpose, if the recording allows that. Operations that are
    /// missing on purpose are better than lost ones, because their number is known.
    fn leaves_out_if_it_may(&self) {
        if self.shared.word(SharedWord::RATHER_LEAVE_OUT).load(Ordering::Relaxed) == 1 {
            self.word(RingWord::LEAVE_OUT).store(1, Ordering::Relaxed);
        }
    }

    /// Fills a place with a record of this kind, number and time. `words` follow the header.
    #[inline(always)]
    pub fn fill(&self, place: &Place, kind: Kind, number: u32, time_ns: u64, words: [u64; RECORD_WORDS - 3]) {
        let at = place.number;
        self.place(at, 1).store(fixed(kind) | u64::from(number), Ordering::Relaxed);
        // In a header, the thread id comes before the process id.
        self.place(at, 2).store(self.tls.ids.get(), Ordering::Relaxed);
        for (index, word) in words.into_iter().enumerate() {
            self.place(at, 3 + index).store(word, Ordering::Relaxed);
        }
        self.place(at, 0).store(time_ns, Ordering::Release);
        will_write(self.place(at.wrapping_add(PREPARED), 0));
    }

    /// Writes a record whose time is already known. `false`: there was no room.
    pub fn put(&self, kind: Kind, number: u32, time_ns: u64, words: [u64; RECORD_WORDS - 3]) -> bool {
        let place = self.take_place();
        if let Some(place) = &place {
            self.fill(place, kind, number, time_ns, words);
        }
        place.is_some()
    }
}
