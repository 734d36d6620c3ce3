//! Taking places in a thread's ring and filling them with records.

use crate::ring::Own;
use crate::word::{add_one, will_write};
use core::sync::atomic::{Ordering, compiler_fence};
use probe_abi::interpose::{RECORD_WORDS, RING_MARGIN, RingWord, SharedWord};
use probe_abi::{Context, Header, Kind};

/// The place so far ahead is asked for while one is written: whoever empties the ring has had it in another CPU's cache.
const PREPARED: u64 = 4;

/// The second word of every record of a kind, without its number.
const fn fixed(kind: Kind) -> u64 {
    (Header::NO_CPU as u64) << 32 | (kind as u64) << 48 | (Context::Task as u64) << 56
}

/// A place in the ring that has been taken.
pub struct Place {
    number: u64,
    /// Places taken and not yet read before it.
    used: u64,
}

impl Own {
    /// Takes the next place; `None`: there is no room, and the record's number is missing.
    #[inline(always)]
    pub fn take_place(&self) -> Option<Place> {
        let head = self.word(RingWord::HEAD);
        let tail = self.word(RingWord::TAIL).load(Ordering::Acquire);
        let used = head.load(Ordering::Relaxed).wrapping_sub(tail);
        if used >= self.shared.layout.ring_records as u64 - RING_MARGIN {
            return None;
        }
        let number = add_one(head);
        // Not before the place is taken: a reader that sees none taken knows that what comes is newer.
        compiler_fence(Ordering::SeqCst);
        Some(Place { number, used })
    }

    /// Fills it: the record of this kind and number, of this time, with these words behind the header.
    #[inline(always)]
    pub fn fill(&self, place: &Place, kind: Kind, number: u32, time_ns: u64, words: [u64; RECORD_WORDS - 3]) {
        let at = place.number;
        self.place(at, 1).store(fixed(kind) | u64::from(number), Ordering::Relaxed);
        // The header has the thread first.
        self.place(at, 2).store(self.tls.ids.get(), Ordering::Relaxed);
        for (index, word) in words.into_iter().enumerate() {
            self.place(at, 3 + index).store(word, Ordering::Relaxed);
        }
        self.place(at, 0).store(time_ns, Ordering::Release);
        will_write(self.place(at.wrapping_add(PREPARED), 0));
        if self.shared.layout.rings_at(at, place.used) {
            self.shared.ring();
            if self.shared.layout.nearly_full(place.used)
                && self.shared.word(SharedWord::RATHER_LEAVE_OUT).load(Ordering::Relaxed) == 1
            {
                self.word(RingWord::LEAVE_OUT).store(1, Ordering::Relaxed);
            }
        }
    }

    /// A record whose time is known already; `false`: there was no room.
    pub fn put(&self, kind: Kind, number: u32, time_ns: u64, words: [u64; RECORD_WORDS - 3]) -> bool {
        let place = self.take_place();
        if let Some(place) = &place {
            self.fill(place, kind, number, time_ns, words);
        }
        place.is_some()
    }
}
