//! The memory that `probe-preload` in the target and longpole share: what lies where, in 64-bit words.
//!
//! ```text
//! page 0      the header, words of `SharedWord`
//! then        one control block for each ring, words of `RingWord`
//! then        the rings: `ring_records` operations of 64 bytes each
//! ```
//!
//! **A ring belongs to one thread.** The thread takes a free ring by writing its ids into [`RingWord::OWNER`]; longpole
//! frees it when the thread is gone and everything has been read.
//!
//! **Writing a record**, in the order of the steps: count the attempt ([`RingWord::ATTEMPTS`], its number is
//! the record's `sequence`); if the ring is full, nothing more (the number is missing: lost); take the next
//! place by counting it ([`RingWord::HEAD`]); read the clock; fill the place; last of all its first word, the
//! time, which was 0 before. So a place that is taken and whose time is 0 is being written: its writer has
//! not read the clock before it took the place. A signal handler that runs in between takes later places.
//!
//! **Reading**: from [`RingWord::TAIL`] on, while the time of the next place is not 0; then the time is set to 0
//! again, and last of all the tail moves. Reader and writer never wait for each other.
//!
//! A ring counts as full some places before it is ([`RING_MARGIN`]): between looking and taking a place, signal
//! handlers may take others.
//!
//! **Memory** is used by the piece ([`SharedLayout::piece_records`]): a page of records, or a few. All rings
//! take their pieces out of one stock, [`SharedWord::FREE`], so that together they never use more than
//! longpole has put there, for any number of writers and however late longpole is. A writer that reaches the
//! end of its pieces ([`RingWord::PAID_TO`]) checks whether the next piece has been read, and then whether
//! longpole has left it there ([`RingWord::IDLE`]: the thread that clears the bit owns the piece). If not, it
//! takes one out of the stock. No ring takes more than remains for others ([`may_take`]), so that a few busy
//! writers leave room for occasional ones. Without a piece, the record is handled as when the ring is full.
//! longpole leaves a piece that it has read where it is, or returns its memory to the system and puts the
//! piece into the stock again, before it moves the tail. It may lower the stock at any time: below 0, no ring
//! gets anything until as much has been returned.
//!
//! **The bell**: longpole empties the rings every now and then, and at once when a thread rings. A writer
//! that finds its ring half full ([`SharedLayout::rings_at`]) sets [`SharedWord::BELL`] to 1 and, if it was
//! 0, wakes the thread that waits for that (a shared futex). A process with a filter of system calls, which
//! may kill it for that, does not ring, and says so once ([`SharedWord::SILENT`]). So does a process in which
//! the library has come up: the kernel's rings report it, and it may need probes. longpole sets it to 0
//! *before* it empties the rings: a later ring takes effect the next time.
//!
//! **What is folded** ([`crate::Burst`]) lies in the control block, not in the ring, as long as it may go on:
//! words from [`RingWord::BURST_VERSION`] on. That one is odd while its thread changes the others, and became
//! so before the clock was read for what they say. It takes its number when it begins. What may still go on
//! need not be waited for: a mutex held for [`crate::MOST_HELD_NS`], or not taken again for
//! [`crate::MOST_APART_NS`], ends it, so that longpole knows then what the thread is going to write, and
//! takes it from there: none of it gets lost with a program that is killed. What the thread writes later
//! under the same number has been reported already.
//!
//! **Where that would soon find no room**, it is only counted, if that is allowed
//! ([`SharedWord::RATHER_LEAVE_OUT`]): what begins to be folded then takes no number ([`BURST_COUNTED`]),
//! each pair of it is added to [`RingWord::COUNTED`] when the mutex is released, and nothing else is written.
//! So no number is missing: no thread waited for any of them. An acquisition that is followed by anything
//! except its release is written, and takes a number then.
//!
//! [`RingWord::PHASE`] and what follows is the operation that the thread is in: what it waits for when it never
//! comes back.

/// First word of the file: `lpshared` in ASCII.
pub const SHARED_MAGIC: u64 = u64::from_le_bytes(*b"lpshared");

/// Bumped whenever the layout changes: the library is embedded in the longpole that reads its rings, so that they can
/// differ only by a mistake.
pub const SHARED_VERSION: u64 = 11;

/// Environment variable for the library: `FD:DEVICE:INODE:PID:PID:FILTERS` in decimal numbers. They are the
/// inherited descriptor of the shared memory, what `fstat` says about it, and processes that have it under
/// that number, too (the command and longpole), for a program whose parent has closed it. The last one is how
/// many filters of system calls (seccomp) longpole has itself, which the command inherits: a program with
/// more of them is not recorded from inside.
pub const SHARED_VARIABLE: &str = "LONGPOLE_INTERPOSE";

/// Places that stay free for signal handlers.
pub const RING_MARGIN: u64 = 64;

/// Words of one record.
pub const RECORD_WORDS: usize = size_of::<crate::Operation>() / 8;

/// Words of a control block: six cache lines, one of which the reader writes, and one that both do.
pub const CONTROL_WORDS: usize = 48;

/// Most pieces of a ring: bits from [`RingWord::IDLE`] to the end of the control block.
const MOST_PIECES: usize = 64 * (CONTROL_WORDS - RingWord::IDLE);

/// Records of the smallest piece: a page of them.
const LEAST_PIECE: usize = PAGE_WORDS / RECORD_WORDS;

/// Whether a ring with this many unread pieces may take another one out of a stock of this size: no ring has
/// more than remains for all others. With many busy writers each gets an equal part, and as much stays for a
/// new one; one alone gets half of everything.
#[inline]
pub const fn may_take(in_use: u64, free: i64) -> bool {
    free > 0 && in_use < free as u64
}

/// Whether it is time to ring: soon that will not be so.
#[inline]
pub const fn is_short(in_use: u64, free: i64) -> bool {
    !may_take(in_use.saturating_mul(2), free)
}

/// Words of a page.
const PAGE_WORDS: usize = 512;

/// Words of the header, as their number.
pub struct SharedWord;
impl SharedWord {
    /// [`SHARED_MAGIC`]
    pub const MAGIC: usize = 0;
    /// [`SHARED_VERSION`]
    pub const VERSION: usize = 1;
    /// 1 while records are wanted.
    pub const RECORDING: usize = 2;
    /// Number of rings.
    pub const RINGS: usize = 3;
    /// Records of one ring: a power of two.
    pub const RING_RECORDS: usize = 4;
    /// Host process id of the command.
    pub const ROOT_PID: usize = 5;
    /// 1 if processes other than `ROOT_PID` are wanted, too.
    pub const CHILDREN: usize = 6;
    /// 1 if a thread that fills its ring faster than it is emptied sets [`RingWord::LEAVE_OUT`] itself: better left out
    /// than lost.
    pub const RATHER_LEAVE_OUT: usize = 7;
    /// Where to look for a free ring first; any number, modulo `RINGS`.
    pub const NEXT_RING: usize = 8;
    /// Operations of threads that found no free ring.
    pub const WITHOUT_RING: usize = 9;
    /// Programs in which the library has come up, and processes forked from them: those that have done a
    /// synchronization operation.
    pub const PROCESSES: usize = 10;
    /// Processes that were wanted but are in a PID namespace of their own.
    pub const FOREIGN: usize = 11;
    /// 1 if the clock can be read without asking the kernel on this machine: with its filters a process may be killed for
    /// asking.
    pub const CLOCK: usize = 12;
    /// 1 if a process no longer rings [`SharedWord::BELL`], since it has further filters.
    pub const SILENT: usize = 13;
    /// Not 0: a ring should be emptied soon. Only its first four bytes, as one number, are ever looked at or changed: a
    /// futex. In a cache line of its own.
    pub const BELL: usize = 16;
    /// Operations of threads without a ring that may touch neither the clock nor the kernel, see
    /// [`RingWord::FORBIDDEN`].
    pub const FORBIDDEN: usize = 24;
    /// Programs that had no room for the memory.
    pub const NOT_UP: usize = 25;
    /// Processes that were wanted but have a clock of their own (time namespaces).
    pub const FOREIGN_CLOCK: usize = 26;
    /// Pieces of memory that all rings may still take together, as an `i64`. In a cache line of its own.
    pub const FREE: usize = 32;
}

/// What recording one operation takes at most, nanoseconds: what takes longer was held up by something else, and is not
/// counted as measured ([`RingWord::COSTS`]).
pub const MOST_COST_NS: u64 = 20_000;

/// What leaving one operation out takes at most, picoseconds.
pub const MOST_LEFT_OUT_PS: u64 = 100_000;

/// Words of a control block, as their number.
pub struct RingWord;
impl RingWord {
    /// `pid << 32 | tid` of the thread that has the ring; 0 = free.
    pub const OWNER: usize = 0;
    /// Records that the ring's threads tried to write. Its low 32 bits number the next one.
    pub const ATTEMPTS: usize = 1;
    /// Places taken.
    pub const HEAD: usize = 2;
    /// Low byte: [`Phase`]; above it a number that changes with every operation.
    pub const PHASE: usize = 3;
    /// The operation in progress, as in [`crate::Operation`].
    pub const BEGAN: usize = 4;
    /// Likewise.
    pub const OBJECT: usize = 5;
    /// Likewise.
    pub const SECOND: usize = 6;
    /// Likewise.
    pub const CALLER: usize = 7;
    /// A [`crate::SyncOperation`] as a number.
    pub const OPERATION: usize = 8;
    /// An address in the frame of the operation in progress: one below another's is gone.
    pub const FRAME: usize = 9;
    /// Operations that were left out, see [`RingWord::LEAVE_OUT`].
    pub const LEFT_OUT: usize = 10;
    /// One more than [`RingWord::HEAD`] was when an operation was left out last.
    pub const LEFT_AT: usize = 11;
    /// Stretches of operations that were left out. Each takes one number ([`RingWord::ATTEMPTS`]), which is missing: so it
    /// shows that something is.
    pub const STRETCHES: usize = 12;
    /// Operations whose recording time in the thread the writer has measured.
    pub const COSTS: usize = 13;
    /// What they took together, nanoseconds.
    pub const COST_NS: usize = 14;
    /// The writer has memory for places before this one.
    pub const PAID_TO: usize = 15;
    /// Places read. Only the reader writes here.
    pub const TAIL: usize = 16;
    /// 1: as long as the thread is the only one of its process, its operations on mutexes that no other process has are left
    /// out. Written by the reader, and by the thread itself ([`SharedWord::RATHER_LEAVE_OUT`]).
    pub const LEAVE_OUT: usize = 17;
    /// Operations that were folded and only counted, two for each pair. The writer's, and only where there is hardly any
    /// room: so it does not matter that the reader has the cache line.
    pub const COUNTED: usize = 22;
    /// Operations that the thread has made since it may touch neither the clock nor the kernel (strict
    /// seccomp, `PR_SET_TSC`). The writer's, and rare, so that it does not matter that the reader has the
    /// cache line.
    pub const FORBIDDEN: usize = 23;
    /// Odd while the words after it are being changed; it only grows.
    pub const BURST_VERSION: usize = 24;
    /// The mutex of the burst that may go on; 0: there is none.
    pub const BURST_OBJECT: usize = 25;
    /// Return address of the calls that take it.
    pub const BURST_CALLER: usize = 26;
    /// Return address of the calls that give it back.
    pub const BURST_RELEASE: usize = 27;
    /// Its number in the ring, as in [`crate::Header::sequence`], or [`BURST_COUNTED`]; [`crate::Burst::flags`] from bit 32
    /// on.
    pub const BURST_NUMBER: usize = 28;
    /// Its first acquisition.
    pub const BURST_BEGAN: usize = 29;
    /// Its last release.
    pub const BURST_ENDED: usize = 30;
    /// When the mutex was taken that is not released yet; 0: it is released.
    pub const BURST_SINCE: usize = 31;
    /// Acquisitions with their releases.
    pub const BURST_COUNT: usize = 32;
    /// See [`crate::Burst::held_ns`].
    pub const BURST_HELD: usize = 33;
    /// See [`crate::Burst::held_least_ns`].
    pub const BURST_HELD_LEAST: usize = 34;
    /// See [`crate::Burst::apart_least_ns`].
    pub const BURST_APART_LEAST: usize = 35;
    /// Operations that have been folded since the ring is there, beyond one for each burst.
    pub const BURST_OPERATIONS: usize = 36;
    /// Operations of bursts that found no room, beyond the one number that is missing for each burst.
    pub const BURST_LOST: usize = 37;
    /// What an operation that is left out takes of the thread's time, picoseconds; 0: not measured.
    pub const LEFT_OUT_PS: usize = 38;
    /// Records for which there was no memory, though there was room in the ring. They are lost as those without room are.
    pub const SHORT: usize = 39;
    /// One bit for each piece of the ring that has memory which is not in use, from here to the end of the block.
    pub const IDLE: usize = 40;
}

/// Of [`RingWord::BURST_NUMBER`]: this burst has no number, since it is only counted.
pub const BURST_COUNTED: u64 = 1 << 63;

/// What [`RingWord::PHASE`] says about the words after it.
#[repr(u8)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// No operation in progress.
    Idle = 0,
    /// They are being filled.
    Filling = 1,
    /// They describe the operation in progress.
    Inside = 2,
}

/// How large the parts are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SharedLayout {
    /// Number of rings, at least 1.
    pub rings: usize,
    /// Records of each: a power of two, at least twice [`RING_MARGIN`].
    pub ring_records: usize,
}

impl SharedLayout {
    /// Most rings, and most records of a ring.
    const MOST: usize = 1 << 20;

    /// Checked numbers; `None` if no version writes such a file.
    pub const fn new(rings: usize, ring_records: usize) -> Option<SharedLayout> {
        let good = rings > 0
            && rings <= SharedLayout::MOST
            && ring_records.is_power_of_two()
            && ring_records >= 2 * RING_MARGIN as usize
            && ring_records <= SharedLayout::MOST;
        if good { Some(SharedLayout { rings, ring_records }) } else { None }
    }

    /// First word of a ring's control block.
    #[inline]
    pub const fn control(&self, ring: usize) -> usize {
        PAGE_WORDS + ring * CONTROL_WORDS
    }

    /// First word of a ring: rings begin at pages.
    #[inline]
    pub const fn ring(&self, ring: usize) -> usize {
        self.control(self.rings).next_multiple_of(PAGE_WORDS) + ring * self.ring_records * RECORD_WORDS
    }

    /// First word of the place with this running number in a ring.
    #[inline]
    pub const fn place(&self, ring: usize, number: u64) -> usize {
        self.ring(ring) + (number as usize & (self.ring_records - 1)) * RECORD_WORDS
    }

    /// Records of one piece: a power of two, and whole pages.
    #[inline]
    pub const fn piece_records(&self) -> u64 {
        let records = self.ring_records / MOST_PIECES;
        (if records > LEAST_PIECE { records } else { LEAST_PIECE }) as u64
    }

    /// Pieces of one ring.
    #[inline]
    pub const fn pieces(&self) -> usize {
        self.ring_records / self.piece_records() as usize
    }

    /// Bytes of one piece.
    #[inline]
    pub const fn piece_bytes(&self) -> u64 {
        self.piece_records() * (RECORD_WORDS * size_of::<u64>()) as u64
    }

    /// Where the piece with this place is noted as idle: a word from [`RingWord::IDLE`] on, and its bit.
    #[inline]
    pub const fn idle(&self, place: u64) -> (usize, u64) {
        let piece = (place / self.piece_records()) as usize & (self.pieces() - 1);
        (RingWord::IDLE + piece / 64, 1 << (piece % 64))
    }

    /// The end of the piece that the writer needs for this place, if all of it has been read before; `None`: the ring is
    /// full.
    #[inline]
    pub const fn piece_end(&self, place: u64, tail: u64) -> Option<u64> {
        let end = (place & !(self.piece_records() - 1)).wrapping_add(self.piece_records());
        if end.wrapping_sub(tail) <= self.ring_records as u64 - RING_MARGIN { Some(end) } else { None }
    }

    /// Whether the writer that is about to take this place, the first one of a piece, rings the bell; `used`: places taken
    /// and not yet read before it. One in sixteen parts of a ring looks at all.
    #[inline]
    pub const fn rings_at(&self, place: u64, used: u64) -> bool {
        let records = self.ring_records as u64;
        place & (records / 16 - 1) == 0 && used >= (records - RING_MARGIN) / 2
    }

    /// Whether a ring with this many places taken and not yet read is as good as full: nothing has read it
    /// since the bell rang.
    #[inline(always)]
    pub const fn nearly_full(&self, used: u64) -> bool {
        used >= (self.ring_records as u64 - RING_MARGIN) / 4 * 3
    }

    /// Words of all.
    pub const fn words(&self) -> usize {
        self.ring(self.rings)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_do_not_overlap() {
        let layout = SharedLayout::new(5, 1024).expect("good numbers");
        assert_eq!(layout.control(0), 512);
        assert!(layout.control(4) + CONTROL_WORDS <= layout.ring(0));
        assert_eq!(layout.ring(0) % 512, 0);
        assert_eq!(layout.place(1, 1023) + RECORD_WORDS, layout.ring(2));
        assert_eq!(layout.place(1, 1024), layout.ring(1));
        assert_eq!(layout.place(4, u64::MAX) + RECORD_WORDS, layout.words());
        // What everybody reads with each record is on another cache line than the bell.
        const { assert!(SharedWord::BELL / 8 > SharedWord::SILENT / 8 && SharedWord::BELL < PAGE_WORDS) };
        // A control block's reader and writer are on different cache lines.
        assert!(RingWord::TAIL / 8 > RingWord::FRAME / 8 && CONTROL_WORDS.is_multiple_of(8));
        const { assert!(RingWord::BURST_VERSION / 8 > RingWord::LEAVE_OUT / 8) };
        const { assert!(RingWord::BURST_LOST < CONTROL_WORDS) };
    }

    /// A ring that nothing empties is reported well before it is full, wherever in the ring it began to fill.
    #[test]
    fn a_ring_that_fills_rings_at_half_and_again_while_nobody_comes() {
        for records in [128u64, 1024, 1 << 15] {
            let layout = SharedLayout::new(1, records as usize).expect("good numbers");
            let room = records - RING_MARGIN;
            for tail in [0, 1, 63, records / 16, records - 1, u64::MAX - 5] {
                let rung = (0..room).filter(|used| layout.rings_at(tail.wrapping_add(*used), *used));
                let first = rung.clone().next().expect("it rings");
                assert!(first >= room / 2 && first < room / 2 + records / 16, "{records}: {first}");
                assert!((4..=9).contains(&rung.clone().count()), "{records}");
                let late = rung.filter(|used| layout.nearly_full(*used)).count();
                assert!((2..=5).contains(&late), "{records}: {late} times before anything is lost");
            }
            assert!(!(0..records).any(|place| layout.rings_at(place, room / 2 - 1)), "hardly anything in it");
        }
    }

    #[test]
    fn nonsense_has_no_layout() {
        for (rings, records) in [(0, 1024), (1, 0), (1, 1000), (1, 64), (1, 1 << 30), (usize::MAX, 1024)] {
            assert_eq!(SharedLayout::new(rings, records), None);
        }
    }
}
