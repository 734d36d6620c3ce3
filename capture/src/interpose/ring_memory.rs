//! What becomes of a ring's memory when it has been read: it stays for the same thread, or goes back to the system and into
//! the pool that all rings take theirs from. The rules are [`probe_abi::interpose`]'s.

use super::shared::Shared;
use super::thread_ring_reader::Turn;
use probe_abi::interpose::{RECORD_WORDS, RingWord, SharedWord};
use std::sync::atomic::Ordering;

/// After this many records the writer learns that they have been read: a page of them.
const ROOM_EVERY: u64 = 64;

/// This many pieces are returned at once, if as many have been read: returning them interrupts the CPUs that
/// the target runs on.
const TOGETHER: u64 = 16;

/// Up to this many pieces stay with the ring of a thread that has ended: short-lived threads need no more.
const KEPT: u32 = 4;

/// Places that have been passed on: the thread knows that they have been read.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Passed {
    to: u64,
}

impl Passed {
    /// Everything before this place has been read: passes it on if it is worth it by now.
    #[inline]
    pub fn to(&mut self, turn: &Turn<'_>, tail: u64, gives_back: bool) {
        let every = if gives_back { TOGETHER * turn.shared.layout().piece_records() } else { ROOM_EVERY };
        if tail.is_multiple_of(every) {
            self.all(turn, tail, gives_back);
        }
    }

    /// Passes on everything before this place.
    pub fn all(&mut self, turn: &Turn<'_>, tail: u64, gives_back: bool) {
        let piece = turn.shared.layout().piece_records();
        let (first, end) = (self.to & !(piece - 1), tail & !(piece - 1));
        // The writer keeps away from them until it learns that they have been read.
        let sane = end.wrapping_sub(first) <= turn.shared.layout().ring_records as u64;
        if sane && !(gives_back && gives(turn.shared, turn.number, first, end)) {
            for place in (first..end).step_by(piece as usize) {
                let (word, bit) = turn.shared.layout().idle(place);
                turn.control(word).fetch_or(bit, Ordering::AcqRel);
            }
        }
        self.over(turn, tail);
    }

    /// The same where it is unknown what lies before this place.
    pub fn over(&mut self, turn: &Turn<'_>, tail: u64) {
        self.to = tail;
        turn.control(RingWord::TAIL).store(tail, Ordering::Release);
    }

    /// The ring's thread is gone and everything has been read: its memory goes into the pool, if it is not just a little.
    pub fn end(&mut self, shared: &Shared, number: usize, tail: u64) {
        let layout = shared.layout();
        let word = |word: usize| shared.word(layout.control(number) + word);
        let idle: u32 =
            idle_words(shared).map(|index| word(index).load(Ordering::Relaxed).count_ones()).sum();
        // It may have been in the middle of a piece.
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

/// Returns the memory that a ring does not need now.
pub(super) fn give_idle_back(shared: &Shared, number: usize) {
    let layout = shared.layout();
    let control = layout.control(number);
    let head = shared.word(control + RingWord::HEAD).load(Ordering::Acquire);
    // A signal handler in the thread may get a place or two beyond what has been paid for.
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

/// Returns whole pieces that no thread may touch any more, and puts them into the pool.
fn gives(shared: &Shared, number: usize, first: u64, end: u64) -> bool {
    let layout = shared.layout();
    let records = layout.ring_records as u64;
    let mut from = first;
    while from < end {
        // Up to where the ring begins again.
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
