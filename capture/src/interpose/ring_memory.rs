//! The memory of places in a ring that have been read: it stays with the same thread, or returns to the system and to the
//! pool from which all rings take memory. The rules are [`probe_abi::interpose`]'s.

use super::shared::Shared;
use super::thread_ring_reader::Turn;
use probe_abi::interpose::{RECORD_WORDS, RingWord, SharedWord};
use std::sync::atomic::Ordering;

/// The writer learns of records that have been read in steps of this number of records, which is a page.
const ROOM_EVERY: u64 = 64;

/// Number of pieces that are returned together, if that many have been read: each return interrupts the CPUs on which
/// the target runs.
const TOGETHER: u64 = 16;

/// The ring of a thread that has ended keeps up to this many pieces: short-lived threads need no more.
const KEPT: u32 = 4;

/// The place in a ring up to which its thread knows that records have been read.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Passed {
    to: u64,
}

impl Passed {
    /// Publishes to the thread that everything before `tail` has been read, if enough has been read since the last
    /// time.
    #[inline]
    pub fn to(&mut self, turn: &Turn<'_>, tail: u64, gives_back: bool) {
        let every = if gives_back { TOGETHER * turn.shared.layout().piece_records() } else { ROOM_EVERY };
        if tail.is_multiple_of(every) {
            self.all(turn, tail, gives_back);
        }
    }

    /// Publishes to the thread that everything before `tail` has been read. Whole pieces are returned, or marked as
    /// idle.
    pub fn all(&mut self, turn: &Turn<'_>, tail: u64, gives_back: bool) {
        let piece = turn.shared.layout().piece_records();
        let (first, end) = (self.to & !(piece - 1), tail & !(piece - 1));
        // The writer does not touch these pieces until it learns that they have been read.
        let sane = end.wrapping_sub(first) <= turn.shared.layout().ring_records as u64;
        if sane && !(gives_back && gives(turn.shared, turn.number, first, end)) {
            for place in (first..end).step_by(piece as usize) {
                let (word, bit) = turn.shared.layout().idle(place);
                turn.control(word).fetch_or(bit, Ordering::AcqRel);
            }
        }
        self.over(turn, tail);
    }

    /// Advances over records whose content is unknown, up to `tail`: no piece is returned or marked as idle.
    pub fn over(&mut self, turn: &Turn<'_>, tail: u64) {
        self.to = tail;
        turn.control(RingWord::TAIL).store(tail, Ordering::Release);
    }

    /// Returns the memory of a ring whose thread has ended and whose records have all been read, unless it is very
    /// little.
    pub fn end(&mut self, shared: &Shared, number: usize, tail: u64) {
        let layout = shared.layout();
        let word = |word: usize| shared.word(layout.control(number) + word);
        let idle: u32 =
            idle_words(shared).map(|index| word(index).load(Ordering::Relaxed).count_ones()).sum();
        // The thread may have been in the middle of a piece.
        let paid = word(RingWord::PAID_TO).load(Ordering::Relaxed).wrapping_sub(tail);
        let open = paid != 0 && paid <= layout.piece_records();
        if idle + u32::from(open) <= KEPT {
            return;
        }
        if shared.give_back(layout.ring(number), layout.ring_records * RECORD_WORDS) {
            idle_words(shared).for_each(|index| word(index).store(0, Ordering::Relaxed));
            word(RingWord::PAID_TO).store(tail, Ordering::Relaxed);
            add(shared, u64::from(idle) + u64::from(open));
        }
    }
}

/// Returns the ring's idle memory.
pub(super) fn give_idle_back(shared: &Shared, number: usize) {
    let layout = shared.layout();
    let control = layout.control(number);
    let head = shared.word(control + RingWord::HEAD).load(Ordering::Acquire);
    // A signal handler in the thread may have got a place or two beyond those for which memory was reserved.
    let near = [head, head.wrapping_add(layout.piece_records())].map(|place| layout.idle(place));
    for index in idle_words(shared) {
        let word = shared.word(control + index);
        if word.load(Ordering::Relaxed) == 0 {
            continue;
        }
        let kept = near.iter().filter(|(word, _)| *word == index).fold(0, |kept, (_, bit)| kept | bit);
        let mut ours = word.fetch_and(kept, Ordering::AcqRel) & !kept;
        while ours != 0 {
            let first = u64::from(ours.trailing_zeros());
            let pieces = u64::from((ours >> first).trailing_ones());
            let run = if pieces == 64 { u64::MAX } else { ((1 << pieces) - 1) << first };
            ours &= !run;
            let piece = 64 * (index - RingWord::IDLE) as u64 + first;
            let records = layout.piece_records();
            if !gives(shared, number, piece * records, (piece + pieces) * records) {
                word.fetch_or(run, Ordering::AcqRel);
                return;
            }
        }
    }
}

fn idle_words(shared: &Shared) -> std::ops::Range<usize> {
    RingWord::IDLE..RingWord::IDLE + shared.layout().pieces().div_ceil(64)
}

/// Returns pieces that no thread may touch any more to the system and to the pool. `false`: that failed.
fn gives(shared: &Shared, number: usize, first: u64, end: u64) -> bool {
    let layout = shared.layout();
    let records = layout.ring_records as u64;
    let mut from = first;
    while from < end {
        // Up to where the ring wraps around.
        let to = ((from / records + 1) * records).min(end);
        if !shared.give_back(layout.place(number, from), (to - from) as usize * RECORD_WORDS) {
            return false;
        }
        add(shared, (to - from) / layout.piece_records());
        from = to;
    }
    true
}

fn add(shared: &Shared, pieces: u64) {
    shared.word(SharedWord::FREE).fetch_add(pieces, Ordering::AcqRel);
}
