//! The layout of the memory that `probe-preload` in the target and longpole share, in 64-bit words.
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
//! **Writing a record**: count the attempt ([`RingWord::ATTEMPTS`]), whose number becomes the record's
//! `sequence`. If the ring is full, stop: the number is missing, so the record counts as lost. Take the next
//! place by counting it ([`RingWord::HEAD`]). Read the clock. Fill the place, last of all its first word, the
//! time, which was 0 before. So a place that is taken and whose time is 0 is being written, and its writer
//! reads the clock after it took the place. A signal handler that runs in between takes later places.
//!
//! **Reading**: from [`RingWord::TAIL`] on, while the time of the next place is not 0. The reader sets the time to 0
//! again, and last of all moves the tail. Reader and writer never wait for each other.
//!
//! A ring counts as full some places before it is ([`RING_MARGIN`]): between a writer's check and its taking a place, signal
//! handlers may take others.
//!
//! **Memory** is used by the piece ([`SharedLayout::piece_records`]): one or a few pages of records. All rings
//! take their pieces from one pool, [`SharedWord::FREE`]. So together they never use more than longpole
//! has put there, for any number of writers and however late longpole is. A writer that reaches the
//! end of its pieces ([`RingWord::PAID_TO`]) checks whether the next piece has been read, and then whether
//! longpole has left its memory there ([`RingWord::IDLE`]: the thread that clears the bit owns the piece). If not, it
//! takes one from the pool. No ring takes more than remains for others ([`may_take`]), so that a few busy
//! writers leave room for occasional ones. Without a piece, the record is handled as when the ring is full.
//! longpole leaves a piece that it has read where it is, or returns its memory to the system and the piece to the
//! pool, before it moves the tail. It may shrink the pool at any time: below 0, no ring
//! gets a piece until enough have been returned.
//!
//! **The bell**: longpole empties the rings now and then, and at once when a thread rings. A writer
//! that finds its ring half full ([`SharedLayout::rings_at`]) sets [`SharedWord::BELL`] to 1 and, if it was
//! 0, wakes the thread that waits for it (a shared futex). A process with a filter of system calls, which
//! might kill it for that, does not ring, and notes this once ([`SharedWord::SILENT`]). A process in which
//! the library has come up rings, too: the kernel's rings have records about it, and it may need probes. longpole sets the
//! bell to 0 *before* it empties the rings, so that a later ring takes effect the next time.
//!
//! **An open burst** ([`crate::Burst`]) lies in the control block, not in the ring, as long as it may continue:
//! in the words from [`RingWord::BURST_VERSION`] on. The version is odd while the thread changes the others, and becomes
//! odd before the clock is read for their times. The burst gets its number when it begins. Records behind it
//! need not wait for it: a mutex held for [`crate::MOST_HELD_NS`], or not taken again for
//! [`crate::MOST_APART_NS`], ends it. Then longpole knows what the thread is going to write, and takes it from the control
//! block, so that nothing is lost with a program that is killed. The record that the thread writes later
//! under the same number has been reported already.
//!
//! **A burst that would soon find no room** is only counted, if that is allowed
//! ([`SharedWord::RATHER_LEAVE_OUT`]). A burst that begins then takes no number ([`BURST_COUNTED`]),
//! each of its pairs is added to [`RingWord::COUNTED`] when the mutex is released, and nothing else is written.
//! So no number is missing, and no thread waited for any of these operations. An acquisition that is followed by anything
//! except its release is written, and takes a number then.
//!
//! [`RingWord::PHASE`] and the words after it describe the operation that the thread is in: what it waits for if the call
//! never returns.

/// First word of the file: `lpshared` in ASCII.
pub const SHARED_MAGIC: u64 = u64::from_le_bytes(*b"lpshared");

/// Increased whenever the layout changes. The library is embedded in the longpole that reads its rings, so the versions can
/// differ only by a mistake.
pub const SHARED_VERSION: u64 = 12;

/// Environment variable for the library: `FD:DEVICE:INODE:PID:PID:FILTERS` in decimal numbers. They are the
/// inherited descriptor of the shared memory, and its device and inode according to `fstat`. The two processes (the command
/// and longpole) have it under that descriptor, too, for a program whose parent has closed it. The last is the
/// number of filters of system calls (seccomp) that longpole has itself, which the command inherits: a program with
/// more of them is not recorded from inside.
pub const SHARED_VARIABLE: &str = "LONGPOLE_INTERPOSE";

/// Places that stay free for signal handlers.
pub const RING_MARGIN: u64 = 64;

/// Number of words of one record.
pub const RECORD_WORDS: usize = size_of::<crate::Operation>() / 8;

/// Words of a control block: six cache lines, of which the reader writes one, and both sides write another.
pub const CONTROL_WORDS: usize = 48;

/// Largest number of pieces of a ring: one bit for each, from [`RingWord::IDLE`] to the end of the control block.
const MOST_PIECES: usize = 64 * (CONTROL_WORDS - RingWord::IDLE);

/// Records of the smallest piece: a page of them.
const LEAST_PIECE: usize = PAGE_WORDS / RECORD_WORDS;

/// Whether a ring with this many unread pieces may take another one from a pool of this size: no ring has more than
/// remains for all other rings. With many busy writers each gets an equal part, and the same amount stays for a new
/// one; a single writer gets half of the pool.
#[inline]
pub const fn may_take(in_use: u64, free: i64) -> bool {
    free > 0 && in_use < free as u64
}

/// Whether it is time to signal the doorbell, since the ring may soon get no further piece.
#[inline]
pub const fn is_short(in_use: u64, free: i64) -> bool {
    !may_take(in_use.saturating_mul(2), free)
}

/// Words of a page.
const PAGE_WORDS: usize = 512;

/// Indices of the header's words.
pub struct SharedWord;
impl SharedWord {
    /// [`SHARED_MAGIC`]
    pub const MAGIC: usize = 0;
    /// [`SHARED_VERSION`]
    pub const VERSION: usize = 1;
    /// Odd while records are wanted, 0 before and after the recording, another even number during a pause
    /// ([`is_recording`]). Each pause and each end of one adds 1.
    pub const RECORDING: usize = 2;
    /// Number of rings.
    pub const RINGS: usize = 3;
    /// Number of records of one ring: a power of two.
    pub const RING_RECORDS: usize = 4;
    /// Host process id of the command.
    pub const ROOT_PID: usize = 5;
    /// 1 if processes other than `ROOT_PID` are wanted, too.
    pub const CHILDREN: usize = 6;
    /// 1 if a thread that fills its ring faster than the reader empties it sets [`RingWord::LEAVE_OUT`] itself:
    /// operations that are not recorded on purpose are better than lost ones.
    pub const RATHER_LEAVE_OUT: usize = 7;
    /// Number of the ring at which the search for a free ring begins; any number, to be taken modulo `RINGS`.
    pub const NEXT_RING: usize = 8;
    /// Operations of threads that found no free ring.
    pub const WITHOUT_RING: usize = 9;
    /// Number of programs in which the library has been initialized, and of processes forked from them: only programs
    /// that have done a synchronization operation.
    pub const PROCESSES: usize = 10;
    /// Number of processes that should be recorded but are in a PID namespace of their own.
    pub const FOREIGN: usize = 11;
    /// 1 if this machine's clock can be read without a system call; a process may be killed by its filters for making
    /// one.
    pub const CLOCK: usize = 12;
    /// 1 if a process no longer signals [`SharedWord::BELL`], since it has further filters of system calls.
    pub const SILENT: usize = 13;
    /// The doorbell. Not 0: a ring should be emptied soon. Only its first four bytes are used, as one number, which is
    /// a futex. It has a cache line of its own.
    pub const BELL: usize = 16;
    /// Operations of threads without a ring that may neither read the clock nor call the kernel, see
    /// [`RingWord::FORBIDDEN`].
    pub const FORBIDDEN: usize = 24;
    /// Number of programs whose address space has no room for the shared memory.
    pub const NOT_UP: usize = 25;
    /// Number of processes that should be recorded but have a clock of their own (time namespaces).
    pub const FOREIGN_CLOCK: usize = 26;
    /// Pieces of memory that all rings may still take together, as an `i64`. In a cache line of its own.
    pub const FREE: usize = 32;
}

/// Whether [`SharedWord::RECORDING`] says that records are wanted now.
#[inline]
pub const fn is_recording(word: u64) -> bool {
    word & 1 == 1
}

/// Whether [`SharedWord::RECORDING`] says that recording is paused.
#[inline]
pub const fn is_paused(word: u64) -> bool {
    word != 0 && word & 1 == 0
}

/// Longest plausible time of recording one operation, nanoseconds. A longer time includes something else, and is not
/// counted as measured ([`RingWord::COSTS`]).
pub const MOST_COST_NS: u64 = 20_000;

/// Longest plausible time of skipping the recording of one operation, picoseconds.
pub const MOST_LEFT_OUT_PS: u64 = 100_000;

/// Indices of a control block's words.
pub struct RingWord;
impl RingWord {
    /// `pid << 32 | tid` of the thread that has the ring; 0 = free.
    pub const OWNER: usize = 0;
    /// Records that the ring's threads tried to write. Its low 32 bits number the next one.
    pub const ATTEMPTS: usize = 1;
    /// Number of places taken so far.
    pub const HEAD: usize = 2;
    /// Low byte: [`Phase`]; above it a number that changes with every operation.
    pub const PHASE: usize = 3;
    /// The operation in progress, as in [`crate::Operation`].
    pub const BEGAN: usize = 4;
    /// The object of the operation in progress.
    pub const OBJECT: usize = 5;
    /// The second object of the operation in progress.
    pub const SECOND: usize = 6;
    /// The caller's address of the operation in progress.
    pub const CALLER: usize = 7;
    /// A [`crate::SyncOperation`] as a number.
    pub const OPERATION: usize = 8;
    /// An address in the stack frame of the operation in progress. An operation whose frame is below a later one's has ended.
    pub const FRAME: usize = 9;
    /// Number of operations that were not recorded on purpose, see [`RingWord::LEAVE_OUT`].
    pub const LEFT_OUT: usize = 10;
    /// One more than the value of [`RingWord::HEAD`] when an operation was last not recorded on purpose.
    pub const LEFT_AT: usize = 11;
    /// Number of stretches of operations that were not recorded on purpose. Each stretch takes one number
    /// ([`RingWord::ATTEMPTS`]). No record has this number, which shows that operations are missing.
    pub const STRETCHES: usize = 12;
    /// Operations whose recording time in the thread the writer has measured.
    pub const COSTS: usize = 13;
    /// Sum of the recording times of the measured operations, nanoseconds.
    pub const COST_NS: usize = 14;
    /// The writer has memory for all places before this one.
    pub const PAID_TO: usize = 15;
    /// Number of places read so far. Only the reader writes here.
    pub const TAIL: usize = 16;
    /// 1: while the thread is the only one of its process, its operations on mutexes that no other process has are not
    /// recorded. Written by the reader, and by the thread itself ([`SharedWord::RATHER_LEAVE_OUT`]).
    pub const LEAVE_OUT: usize = 17;
    /// [`SharedWord::RECORDING`] at the thread's last operation, 0 before the first one. After a pause the thread takes
    /// one number for no record, as after a stretch ([`RingWord::STRETCHES`]).
    pub const RECORDING_SEEN: usize = 18;
    /// Operations that were folded and only counted, two for each pair. Written by the thread, and only when there is hardly
    /// any room, so it does not matter that the reader uses this cache line.
    pub const COUNTED: usize = 22;
    /// Number of operations that the thread has done since it may neither read the clock nor call the kernel (strict
    /// seccomp, `PR_SET_TSC`). The thread writes this word rarely, so it does not matter that the reader uses this
    /// cache line.
    pub const FORBIDDEN: usize = 23;
    /// Version of the words of the open burst: odd while the thread changes them. It only increases.
    pub const BURST_VERSION: usize = 24;
    /// The mutex of the open burst; 0: no burst is open.
    pub const BURST_OBJECT: usize = 25;
    /// Return address of the calls that acquire the burst's object.
    pub const BURST_CALLER: usize = 26;
    /// Return address of the calls that release the burst's object.
    pub const BURST_RELEASE: usize = 27;
    /// The burst's number in the ring, as in [`crate::Header::sequence`], or [`BURST_COUNTED`]; from bit 32 on
    /// [`crate::Burst::flags`].
    pub const BURST_NUMBER: usize = 28;
    /// Time of the burst's first acquisition.
    pub const BURST_BEGAN: usize = 29;
    /// Time of the burst's last release.
    pub const BURST_ENDED: usize = 30;
    /// Time at which the object was acquired, if it has not been released yet; 0: it is released.
    pub const BURST_SINCE: usize = 31;
    /// Number of acquisitions in the burst, each with its release.
    pub const BURST_COUNT: usize = 32;
    /// See [`crate::Burst::held_ns`].
    pub const BURST_HELD: usize = 33;
    /// See [`crate::Burst::held_least_ns`].
    pub const BURST_HELD_LEAST: usize = 34;
    /// See [`crate::Burst::apart_least_ns`].
    pub const BURST_APART_LEAST: usize = 35;
    /// Number of operations folded since the ring exists, less one for each burst.
    pub const BURST_OPERATIONS: usize = 36;
    /// Number of operations in bursts for which there was no room, less one for each burst, whose number is missing
    /// among the records.
    pub const BURST_LOST: usize = 37;
    /// Time that leaving out an operation takes in the thread, picoseconds; 0: not measured.
    pub const LEFT_OUT_PS: usize = 38;
    /// Records for which there was no memory, though the ring had room. They are lost like those without room.
    pub const SHORT: usize = 39;
    /// One bit for each piece of the ring that has memory and is not in use; these bits fill the words up to the end of
    /// the block.
    pub const IDLE: usize = 40;
}

/// A bit of [`RingWord::BURST_NUMBER`]: the burst has no number, since it is only counted.
pub const BURST_COUNTED: u64 = 1 << 63;

/// The state of the words after [`RingWord::PHASE`], which is in that word's low byte.
#[repr(u8)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// No operation is in progress.
    Idle = 0,
    /// The words are being filled.
    Filling = 1,
    /// The words describe the operation in progress.
    Inside = 2,
}

/// The sizes of the memory's parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SharedLayout {
    /// Number of rings, at least 1.
    pub rings: usize,
    /// Records of each ring: a power of two, at least twice [`RING_MARGIN`].
    pub ring_records: usize,
}

impl SharedLayout {
    /// Largest number of rings, and of records of a ring.
    const MOST: usize = 1 << 20;

    /// A layout with these sizes; `None` if no version writes such a file.
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

    /// Number of records in one piece: a power of two, and a multiple of a page.
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

    /// Size of one piece, bytes.
    #[inline]
    pub const fn piece_bytes(&self) -> u64 {
        self.piece_records() * (RECORD_WORDS * size_of::<u64>()) as u64
    }

    /// The word, counted from [`RingWord::IDLE`], and the bit that mark the piece of this place as idle.
    #[inline]
    pub const fn idle(&self, place: u64) -> (usize, u64) {
        let piece = (place / self.piece_records()) as usize & (self.pieces() - 1);
        (RingWord::IDLE + piece / 64, 1 << (piece % 64))
    }

    /// The end of the piece that the writer needs for this place, if all records in the piece have been read; `None`:
    /// the ring is full.
    #[inline]
    pub const fn piece_end(&self, place: u64, tail: u64) -> Option<u64> {
        let end = (place & !(self.piece_records() - 1)).wrapping_add(self.piece_records());
        if end.wrapping_sub(tail) <= self.ring_records as u64 - RING_MARGIN { Some(end) } else { None }
    }

    /// Whether the writer of this place, the first one of a piece, must signal the doorbell. `used`: number of places
    /// before it that are taken and not yet read. The answer can be yes only at sixteen places of a ring.
    #[inline]
    pub const fn rings_at(&self, place: u64, used: u64) -> bool {
        let records = self.ring_records as u64;
        place & (records / 16 - 1) == 0 && used >= (records - RING_MARGIN) / 2
    }

    /// Whether a ring with this number of places taken and not yet read counts as nearly full: then the reader has not
    /// read it since the doorbell was signalled.
    #[inline(always)]
    pub const fn nearly_full(&self, used: u64) -> bool {
        used >= (self.ring_records as u64 - RING_MARGIN) / 4 * 3
    }

    /// Number of words of the complete memory.
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
        // Words that every writer reads for each record are on another cache line than the doorbell.
        const { assert!(SharedWord::BELL / 8 > SharedWord::SILENT / 8 && SharedWord::BELL < PAGE_WORDS) };
        // A control block's reader and writer are on different cache lines.
        assert!(RingWord::TAIL / 8 > RingWord::FRAME / 8 && CONTROL_WORDS.is_multiple_of(8));
        const { assert!(RingWord::BURST_VERSION / 8 > RingWord::LEAVE_OUT / 8) };
        const { assert!(RingWord::BURST_LOST < CONTROL_WORDS) };
    }

    /// If nothing empties a ring, that is reported well before the ring is full, wherever in the ring the records
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
