//! The layout of the memory that the library `probe-preload` in the target shares with longpole, in 64-bit words.
//!
//! ```text
//! page 0      the header, words of `SharedWord`
//! then        one control block for each ring, words of `RingWord`
//! then        the rings: `ring_records` operations of 64 bytes each
//! ```
//!
//! **A ring belongs to one thread.** A thread takes a free ring by writing its ids into [`RingWord::OWNER`]. longpole
//! frees the ring when the thread has ended and all records have been read.
//!
//! **Writing a record.** The thread counts the attempt ([`RingWord::ATTEMPTS`]), and the number of the attempt becomes
//! the record's `sequence`. If the ring is full, the thread stops: the number is missing in the records, which shows
//! that one was lost. Otherwise it takes the next place by counting it ([`RingWord::HEAD`]), reads the clock, and fills
//! the place. The first word of the place, the time, was 0 before and is written last. So a place that is taken and
//! whose time is 0 is still being written, and its writer reads the clock after taking the place. A signal handler that
//! runs in between takes later places.
//!
//! **Reading.** longpole reads from [`RingWord::TAIL`] on, as long as the time of the next place is not 0. longpole
//! sets each time to 0 again, and moves the tail last. Reader and writer never wait for each other.
//!
//! A ring counts as full when [`RING_MARGIN`] places are still free, because signal handlers may take places between a
//! writer's check and its taking a place.
//!
//! **Memory** is used in pieces ([`SharedLayout::piece_records`]) of one or a few pages of records. All rings take
//! their pieces from one pool, [`SharedWord::FREE`]. So all rings together never use more memory than longpole has
//! allowed, for any number of writers and even if longpole reads late. A writer at the end of its pieces
//! ([`RingWord::PAID_TO`]) first checks whether the next piece has been read. Then it checks whether longpole has left
//! memory in that piece ([`RingWord::IDLE`]: the thread that clears the bit owns the piece). If not, the writer takes a
//! piece from the pool. No ring may take more than the pool keeps for others ([`may_take`]), so that a few busy writers
//! leave room for occasional ones. Without a piece, the record is lost as in a full ring. When longpole has read a
//! piece, it either leaves the memory where it is, or returns the memory to the system and the piece to the pool.
//! longpole does so before it moves the tail. longpole may make the pool smaller at any time. While the count is below
//! 0, no ring gets a piece until enough pieces have been returned.
//!
//! **The doorbell.** longpole empties the rings regularly, and at once when a thread signals the doorbell. A writer
//! whose ring is half full ([`SharedLayout::rings_at`]) sets [`SharedWord::BELL`] to 1. If the word was 0, the writer
//! also wakes the thread that waits for it (a shared futex). A process with a filter of system calls does not signal,
//! because the filter might end the process for the wake-up. Such a process notes this once ([`SharedWord::SILENT`]). A
//! process in which the library has been initialized signals, too: the kernel's rings have records about the process,
//! and it may need probes. longpole sets the word to 0 *before* it empties the rings, so that a signal in between takes
//! effect the next time.
//!
//! **An open burst** ([`crate::Burst`]) is in the control block, not in the ring, as long as it may continue: in the
//! words from [`RingWord::BURST_VERSION`] on. The version is odd while the thread changes the other words, and becomes
//! odd before the thread reads the clock for their times. The burst gets its number when it begins. Later records need
//! not wait for the burst to be written. A mutex that is held for [`crate::MOST_HELD_NS`], or not taken again for
//! [`crate::MOST_APART_NS`], ends the burst. Then longpole knows which record the thread is going to write, and takes
//! the burst from the control block. So nothing is lost if the program is killed. When the thread later writes the
//! record with that number, longpole ignores it as already reported.
//!
//! **A burst that would soon find no room** is only counted, if the recording allows it
//! ([`SharedWord::RATHER_LEAVE_OUT`]). A burst that begins in this state takes no number ([`BURST_COUNTED`]). Each
//! acquisition and its release are added to [`RingWord::COUNTED`] at the release, and nothing else is written. So no
//! number is missing, and no thread waited for any of these operations. If an acquisition is followed by anything but
//! its release, it is written and takes a number then.
//!
//! [`RingWord::PHASE`] and the words after it describe the operation that the thread is executing. So longpole knows
//! what the thread waits for if the call never returns.

/// First word of the memory: `lpshared` in ASCII.
pub const SHARED_MAGIC: u64 = u64::from_le_bytes(*b"lpshared");

/// Version of the layout, increased with every change. The longpole that reads the rings contains the library, so the
/// versions differ only by mistake.
pub const SHARED_VERSION: u64 = 12;

/// Environment variable for the library: `FD:DEVICE:INODE:PID:PID:FILTERS` in decimal numbers. FD is the inherited
/// descriptor of the shared memory; DEVICE and INODE are the memory's, according to `fstat`. The two processes (the
/// command and longpole) have the memory under the same descriptor. A program whose parent has closed the descriptor
/// opens theirs. FILTERS is the number of filters of system calls (seccomp) that longpole itself has, which the command
/// inherits. A program with more filters is not recorded by the library.
pub const SHARED_VARIABLE: &str = "LONGPOLE_INTERPOSE";

/// Number of places in a ring that stay free for signal handlers.
pub const RING_MARGIN: u64 = 64;

/// Number of words of one record.
pub const RECORD_WORDS: usize = size_of::<crate::Operation>() / 8;

/// Number of words of a control block. A control block fills six cache lines: the reader writes one of them, and both
/// sides write another one.
pub const CONTROL_WORDS: usize = 48;

/// Largest number of pieces of a ring. Each has one bit, in the words from [`RingWord::IDLE`] to the end of the control
/// block.
const MOST_PIECES: usize = 64 * (CONTROL_WORDS - RingWord::IDLE);

/// Number of records in the smallest piece, which fill one page.
const LEAST_PIECE: usize = PAGE_WORDS / RECORD_WORDS;

/// Whether a ring with this many unread pieces may take another one from a pool of this size. No ring may have more
/// pieces than stay in the pool for all others. So each of many busy writers gets an equal part, and as much stays for
/// a new one. A single writer gets half of the pool.
#[inline]
pub const fn may_take(in_use: u64, free: i64) -> bool {
    free > 0 && in_use < free as u64
}

/// Whether a writer must signal the doorbell now, because its ring may soon get no further piece.
#[inline]
pub const fn is_short(in_use: u64, free: i64) -> bool {
    !may_take(in_use.saturating_mul(2), free)
}

/// Number of words in a page.
const PAGE_WORDS: usize = 512;

/// Indices of the header's words.
pub struct SharedWord;
impl SharedWord {
    /// [`SHARED_MAGIC`]
    pub const MAGIC: usize = 0;
    /// [`SHARED_VERSION`]
    pub const VERSION: usize = 1;
    /// Odd while records are wanted. 0 before and after the recording, and another even number during a pause
    /// ([`is_recording`]). The word increases by 1 at the beginning and at the end of each pause.
    pub const RECORDING: usize = 2;
    /// Number of rings.
    pub const RINGS: usize = 3;
    /// Number of records of one ring, a power of two.
    pub const RING_RECORDS: usize = 4;
    /// Process id of the command, in the host's PID namespace.
    pub const ROOT_PID: usize = 5;
    /// 1 if longpole also wants records of processes other than `ROOT_PID`.
    pub const CHILDREN: usize = 6;
    /// 1 if a thread that fills its ring faster than the reader empties it may set [`RingWord::LEAVE_OUT`] itself.
    /// Operations that are not recorded on purpose are better than lost ones, because the lost ones are unknown.
    pub const RATHER_LEAVE_OUT: usize = 7;
    /// Number of the ring at which the search for a free ring begins, modulo `RINGS`.
    pub const NEXT_RING: usize = 8;
    /// Number of operations of threads that found no free ring.
    pub const WITHOUT_RING: usize = 9;
    /// Number of programs in which the library has been initialized, and of processes forked from them. Programs
    /// without a synchronization operation are not among them.
    pub const PROCESSES: usize = 10;
    /// Number of processes that should be recorded but have a PID namespace of their own.
    pub const FOREIGN: usize = 11;
    /// 1 if this machine's clock can be read without a system call. A process whose filters forbid the call could be
    /// killed for making it.
    pub const CLOCK: usize = 12;
    /// 1 if a process no longer signals [`SharedWord::BELL`], because it has further filters of system calls.
    pub const SILENT: usize = 13;
    /// The doorbell: not 0 if a ring should be emptied soon. Only the first four bytes are used, as one number, which
    /// is a futex. The word has a cache line of its own.
    pub const BELL: usize = 16;
    /// Number of operations of threads without a ring that may neither read the clock nor call the kernel, see
    /// [`RingWord::FORBIDDEN`].
    pub const FORBIDDEN: usize = 24;
    /// Number of programs whose address space has no room for the shared memory.
    pub const NOT_UP: usize = 25;
    /// Number of processes that should be recorded but have a clock of their own (a time namespace).
    pub const FOREIGN_CLOCK: usize = 26;
    /// Number of pieces of memory that all rings together may still take, as an `i64`. The word has a cache line of its
    /// own.
    pub const FREE: usize = 32;
}

/// Whether this value of [`SharedWord::RECORDING`] means that records are wanted now.
#[inline]
pub const fn is_recording(word: u64) -> bool {
    word & 1 == 1
}

/// Whether this value of [`SharedWord::RECORDING`] means that recording is paused.
#[inline]
pub const fn is_paused(word: u64) -> bool {
    word != 0 && word & 1 == 0
}

/// Longest plausible time for recording one operation, in nanoseconds. A longer time includes something else, such as
/// an interrupt, and is not used as a measurement ([`RingWord::COSTS`]).
pub const MOST_COST_NS: u64 = 20_000;

/// Longest plausible time for not recording one operation, in picoseconds.
pub const MOST_LEFT_OUT_PS: u64 = 100_000;

/// Indices of a control block's words.
pub struct RingWord;
impl RingWord {
    /// `pid << 32 | tid` of the thread that owns the ring; 0: the ring is free.
    pub const OWNER: usize = 0;
    /// Number of records that the ring's threads tried to write. The lower 32 bits are the number of the next record.
    pub const ATTEMPTS: usize = 1;
    /// Number of places taken so far.
    pub const HEAD: usize = 2;
    /// Low byte: the [`Phase`]. The bits above contain a number that changes with every operation.
    pub const PHASE: usize = 3;
    /// Time at which the operation in progress began, as in [`crate::Operation`].
    pub const BEGAN: usize = 4;
    /// The object of the operation in progress.
    pub const OBJECT: usize = 5;
    /// The second object of the operation in progress.
    pub const SECOND: usize = 6;
    /// Return address of the operation in progress.
    pub const CALLER: usize = 7;
    /// Kind of the operation in progress: a [`crate::SyncOperation`] as a number.
    pub const OPERATION: usize = 8;
    /// An address in the stack frame of the operation in progress. If a later operation's frame is above this address,
    /// this operation has ended.
    pub const FRAME: usize = 9;
    /// Number of operations that were not recorded on purpose, see [`RingWord::LEAVE_OUT`].
    pub const LEFT_OUT: usize = 10;
    /// The value of [`RingWord::HEAD`] plus one, at the last time when an operation was not recorded on purpose.
    pub const LEFT_AT: usize = 11;
    /// Number of stretches of operations that were not recorded on purpose. Each stretch takes one number
    /// ([`RingWord::ATTEMPTS`]) that no record has. The missing number shows that operations are missing.
    pub const STRETCHES: usize = 12;
    /// Number of operations for which the thread has measured how long recording takes.
    pub const COSTS: usize = 13;
    /// Sum of the recording times of the measured operations, in nanoseconds.
    pub const COST_NS: usize = 14;
    /// The ring has memory for all places before this number.
    pub const PAID_TO: usize = 15;
    /// Number of places read so far. Only the reader writes this word.
    pub const TAIL: usize = 16;
    /// 1: while the thread is the only one of its process, its operations on mutexes that no other process has are not
    /// recorded. The reader writes this word, and so does the thread itself ([`SharedWord::RATHER_LEAVE_OUT`]).
    pub const LEAVE_OUT: usize = 17;
    /// The value of [`SharedWord::RECORDING`] at the thread's last operation; 0 before the first one. After a pause the
    /// thread skips one number, as after a stretch ([`RingWord::STRETCHES`]).
    pub const RECORDING_SEEN: usize = 18;
    /// Number of operations of bursts that were only counted, two for each pair. The thread writes this word only when
    /// there is hardly any room, so it does no harm that the reader writes to the same cache line.
    pub const COUNTED: usize = 22;
    /// Number of operations that the thread has done since it may neither read the clock nor call the kernel (strict
    /// seccomp, `PR_SET_TSC`). The thread writes this word rarely, so it does no harm that the reader writes to the
    /// same cache line.
    pub const FORBIDDEN: usize = 23;
    /// Version of the words of the open burst. The version is odd while the thread changes the words, and only
    /// increases.
    pub const BURST_VERSION: usize = 24;
    /// Address of the open burst's mutex; 0: no burst is open.
    pub const BURST_OBJECT: usize = 25;
    /// Return address of the calls that acquire the burst's object.
    pub const BURST_CALLER: usize = 26;
    /// Return address of the calls that release the burst's object.
    pub const BURST_RELEASE: usize = 27;
    /// The burst's number in the ring, as in [`crate::Header::sequence`], or [`BURST_COUNTED`]. The bits from 32 on are
    /// [`crate::Burst::flags`].
    pub const BURST_NUMBER: usize = 28;
    /// Time of the burst's first acquisition.
    pub const BURST_BEGAN: usize = 29;
    /// Time of the burst's last release.
    pub const BURST_ENDED: usize = 30;
    /// Time at which the object was acquired, while it is not released yet; 0: the object is released.
    pub const BURST_SINCE: usize = 31;
    /// Number of acquisitions in the burst that were also released.
    pub const BURST_COUNT: usize = 32;
    /// See [`crate::Burst::held_ns`].
    pub const BURST_HELD: usize = 33;
    /// See [`crate::Burst::held_least_ns`].
    pub const BURST_HELD_LEAST: usize = 34;
    /// See [`crate::Burst::apart_least_ns`].
    pub const BURST_APART_LEAST: usize = 35;
    /// Number of operations in bursts since the ring exists, minus one for each burst.
    pub const BURST_OPERATIONS: usize = 36;
    /// Number of operations in bursts that had no room in the ring, minus one for each burst. That one operation is
    /// counted by the burst's number, which is missing among the records.
    pub const BURST_LOST: usize = 37;
    /// Time that not recording an operation takes in the thread, in picoseconds; 0: not measured.
    pub const LEFT_OUT_PS: usize = 38;
    /// Number of records for which there was no memory although the ring had room. Such records are lost, as in a full
    /// ring.
    pub const SHORT: usize = 39;
    /// One bit for each piece of the ring that has memory and is not in use. These bits fill the words up to the end of
    /// the block.
    pub const IDLE: usize = 40;
}

/// A bit of [`RingWord::BURST_NUMBER`]: the burst has no number, because its operations are only counted.
pub const BURST_COUNTED: u64 = 1 << 63;

/// The state of the words after [`RingWord::PHASE`]. The low byte of that word contains it.
#[repr(u8)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// No operation is in progress.
    Idle = 0,
    /// The thread is filling the words.
    Filling = 1,
    /// The words describe the operation in progress.
    Inside = 2,
}

/// The sizes of the parts of the shared memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SharedLayout {
    /// Number of rings, at least 1.
    pub rings: usize,
    /// Number of records of each ring: a power of two, at least twice [`RING_MARGIN`].
    pub ring_records: usize,
}

impl SharedLayout {
    /// Largest number of rings, and largest number of records of a ring.
    const MOST: usize = 1 << 20;

    /// A layout with these sizes; `None` if no version of longpole makes such a layout.
    pub const fn new(rings: usize, ring_records: usize) -> Option<SharedLayout> {
        let good = rings > 0
            && rings <= SharedLayout::MOST
            && ring_records.is_power_of_two()
            && ring_records >= 2 * RING_MARGIN as usize
            && ring_records <= SharedLayout::MOST;
        if good { Some(SharedLayout { rings, ring_records }) } else { None }
    }

    /// Index of the first word of a ring's control block.
    #[inline]
    pub const fn control(&self, ring: usize) -> usize {
        PAGE_WORDS + ring * CONTROL_WORDS
    }

    /// Index of the first word of a ring. Each ring begins at a page.
    #[inline]
    pub const fn ring(&self, ring: usize) -> usize {
        self.control(self.rings).next_multiple_of(PAGE_WORDS) + ring * self.ring_records * RECORD_WORDS
    }

    /// Index of the first word of the place with this number in a ring. Numbers count up without end.
    #[inline]
    pub const fn place(&self, ring: usize, number: u64) -> usize {
        self.ring(ring) + (number as usize & (self.ring_records - 1)) * RECORD_WORDS
    }

    /// Number of records in one piece, a power of two. A piece fills one or several pages.
    #[inline]
    pub const fn piece_records(&self) -> u64 {
        let records = self.ring_records / MOST_PIECES;
        (if records > LEAST_PIECE { records } else { LEAST_PIECE }) as u64
    }

    /// Number of pieces of one ring.
    #[inline]
    pub const fn pieces(&self) -> usize {
        self.ring_records / self.piece_records() as usize
    }

    /// Size of one piece, in bytes.
    #[inline]
    pub const fn piece_bytes(&self) -> u64 {
        self.piece_records() * (RECORD_WORDS * size_of::<u64>()) as u64
    }

    /// The word (counted from [`RingWord::IDLE`]) and the bit that say whether the piece of this place is idle.
    #[inline]
    pub const fn idle(&self, place: u64) -> (usize, u64) {
        let piece = (place / self.piece_records()) as usize & (self.pieces() - 1);
        (RingWord::IDLE + piece / 64, 1 << (piece % 64))
    }

    /// The end of the piece that the writer needs for this place, if all old records in the piece have been read.
    /// `None`: the ring is full.
    #[inline]
    pub const fn piece_end(&self, place: u64, tail: u64) -> Option<u64> {
        let end = (place & !(self.piece_records() - 1)).wrapping_add(self.piece_records());
        if end.wrapping_sub(tail) <= self.ring_records as u64 - RING_MARGIN { Some(end) } else { None }
    }

    /// Whether the writer of this place must signal the doorbell. The place is the first one of a piece. `used` is the
    /// number of places before it that are taken and not read yet. The answer can be yes only at sixteen places of a
    /// ring.
    #[inline]
    pub const fn rings_at(&self, place: u64, used: u64) -> bool {
        let records = self.ring_records as u64;
        place & (records / 16 - 1) == 0 && used >= (records - RING_MARGIN) / 2
    }

    /// Whether a ring with this number of taken and unread places counts as nearly full. Then the reader has not read
    /// the ring since the doorbell was signalled.
    #[inline(always)]
    pub const fn nearly_full(&self, used: u64) -> bool {
        used >= (self.ring_records as u64 - RING_MARGIN) / 4 * 3
    }

    /// Number of words of the whole shared memory.
    pub const fn words(&self) -> usize {
        self.ring(self.rings)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_the_shared_memory_do_not_overlap() {
        let layout = SharedLayout::new(5, 1024).expect("good numbers");
        assert_eq!(layout.control(0), 512);
        assert!(layout.control(4) + CONTROL_WORDS <= layout.ring(0));
        assert_eq!(layout.ring(0) % 512, 0);
        assert_eq!(layout.place(1, 1023) + RECORD_WORDS, layout.ring(2));
        assert_eq!(layout.place(1, 1024), layout.ring(1));
        assert_eq!(layout.place(4, u64::MAX) + RECORD_WORDS, layout.words());
        // Words that every writer reads for each record must not share a cache line with the doorbell.
        const { assert!(SharedWord::BELL / 8 > SharedWord::SILENT / 8 && SharedWord::BELL < PAGE_WORDS) };
        // The words that a ring's reader writes must not share a cache line with those that the ring's thread writes.
        assert!(RingWord::TAIL / 8 > RingWord::FRAME / 8 && CONTROL_WORDS.is_multiple_of(8));
        const { assert!(RingWord::BURST_VERSION / 8 > RingWord::LEAVE_OUT / 8) };
        const { assert!(RingWord::BURST_LOST < CONTROL_WORDS) };
    }

    /// If nothing empties a ring, the thread must signal well before the ring is full, wherever in the ring the records
    /// began.
    #[test]
    fn a_ring_that_fills_rings_the_doorbell_at_half_and_again_when_nearly_full() {
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
    fn impossible_ring_numbers_have_no_layout() {
        for (rings, records) in [(0, 1024), (1, 0), (1, 1000), (1, 64), (1, 1 << 30), (usize::MAX, 1024)] {
            assert_eq!(SharedLayout::new(rings, records), None);
        }
    }
}
