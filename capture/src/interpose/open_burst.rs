//! The burst that a thread has open: operations that it has folded into its ring's control block and not yet written as a
//! record. As soon as a burst can no longer continue, it is final. Then it is reported from the control block, and the
//! record that the thread writes later is dropped.

use super::shared::Shared;
use probe_abi::interpose::{BURST_COUNTED, RECORD_WORDS, RingWord};
use probe_abi::{Burst, Context, Header, Kind, MOST_APART_NS, MOST_HELD_NS, Operation, OperationFlags};
use std::sync::atomic::{Ordering, fence};

/// Number of attempts to read all words of a control block consistently.
const TRIES: usize = 4;

/// A burst that is not finished, as the words of a control block describe it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct OpenBurst {
    object: u64,
    caller: u64,
    release: u64,
    number: u64,
    began_ns: u64,
    ended_ns: u64,
    since_ns: u64,
    count: u64,
    held_ns: u64,
    held_least_ns: u64,
    apart_least_ns: u64,
    attempts: u64,
}

/// The result of reading a control block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Look {
    /// No burst is open.
    Nothing,
    /// This burst is open (not finished).
    There(OpenBurst),
    /// The thread is changing the words; their version.
    Changing(u64),
}

/// The numbers of the burst and lock that were reported from the control block and that the thread may still write.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ReportedBurst {
    burst: Option<u32>,
    lock: Option<(u32, u64)>,
}

impl Look {
    /// The number that the record of the open burst would have, if the burst would be written at all.
    pub fn number(&self) -> Option<u32> {
        match self {
            Look::There(open) if open.has_burst() => Some(open.number as u32),
            Look::There(open) => (open.since_ns != 0).then(|| open.lock_number()),
            Look::Nothing | Look::Changing(_) => None,
        }
    }
}

impl OpenBurst {
    /// Reads the control block of a ring. `torn`: its thread has ended, perhaps while it was changing the words.
    pub fn look(shared: &Shared, number: usize, torn: bool) -> Look {
        let control = shared.layout().control(number);
        let word = |word: usize| shared.word(control + word).load(Ordering::Relaxed);
        let mut version = 0;
        for _ in 0..TRIES {
            version = shared.word(control + RingWord::BURST_VERSION).load(Ordering::Acquire);
            if !version.is_multiple_of(2) && !torn {
                std::hint::spin_loop();
                continue;
            }
            let open = OpenBurst {
                object: word(RingWord::BURST_OBJECT),
                caller: word(RingWord::BURST_CALLER),
                release: word(RingWord::BURST_RELEASE),
                number: word(RingWord::BURST_NUMBER),
                began_ns: word(RingWord::BURST_BEGAN),
                ended_ns: word(RingWord::BURST_ENDED),
                since_ns: word(RingWord::BURST_SINCE),
                count: word(RingWord::BURST_COUNT),
                held_ns: word(RingWord::BURST_HELD),
                held_least_ns: word(RingWord::BURST_HELD_LEAST),
                apart_least_ns: word(RingWord::BURST_APART_LEAST),
                attempts: word(RingWord::ATTEMPTS),
            };
            fence(Ordering::Acquire);
            if word(RingWord::BURST_VERSION) == version || torn {
                return if open.object == 0 { Look::Nothing } else { Look::There(open) };
            }
        }
        Look::Changing(version)
    }

    /// Time at which an operation was last added, ns. The burst's record will not be older than this.
    pub fn last_ns(&self) -> u64 {
        if self.since_ns == 0 { self.ended_ns } else { self.since_ns }
    }

    /// Whether the burst can no longer continue at this time: the thread's next operation will end it.
    pub fn is_over(&self, now_ns: u64) -> bool {
        let most_ns = if self.since_ns == 0 { MOST_APART_NS } else { MOST_HELD_NS };
        now_ns.saturating_sub(self.last_ns()) > most_ns
    }

    /// Passes the burst and the open acquisition to the sink, each only once. The target wrote the numbers and times.
    pub fn tell(&self, told: &mut ReportedBurst, owner: u64, sink: &mut dyn FnMut(&[u8; RECORD_WORDS * 8])) {
        let (burst, lock) = (self.number as u32, self.lock_number());
        if self.has_burst() && told.burst != Some(burst) {
            told.burst = Some(burst);
            sink(&zerocopy::transmute!(self.burst(owner)));
        }
        if self.since_ns != 0 && told.lock != Some((lock, self.since_ns)) {
            told.lock = Some((lock, self.since_ns));
            sink(&zerocopy::transmute!(self.lock(owner)));
        }
    }

    /// Whether the pairs of the burst get a record; otherwise they are only counted.
    fn has_burst(&self) -> bool {
        self.count > 0 && !self.is_counted()
    }

    fn is_counted(&self) -> bool {
        self.number & BURST_COUNTED != 0
    }

    /// The number that the acquisition without a release gets when it is written.
    fn lock_number(&self) -> u32 {
        if self.count > 0 || self.is_counted() { self.attempts as u32 } else { self.number as u32 }
    }

    fn header(kind: Kind, time_ns: u64, sequence: u32, owner: u64) -> Header {
        Header {
            time_ns,
            sequence,
            cpu: Header::NO_CPU,
            kind: kind as u8,
            context: Context::Task as u8,
            tid: owner as u32,
            pid: (owner >> 32) as u32,
        }
    }

    fn burst(&self, owner: u64) -> Burst {
        let number = |value: u64| u32::try_from(value).unwrap_or(u32::MAX);
        Burst {
            header: OpenBurst::header(Kind::Burst, self.ended_ns, self.number as u32, owner),
            object: self.object,
            caller: self.caller,
            span_ns: number(self.ended_ns.saturating_sub(self.began_ns)),
            held_ns: number(self.held_ns),
            held_least_ns: number(self.held_least_ns),
            apart_least_ns: if self.count > 1 { number(self.apart_least_ns) } else { 0 },
            release: self.release.wrapping_sub(self.caller) as i32,
            count: u16::try_from(self.count).unwrap_or(u16::MAX),
            flags: (self.number >> 32) as u16,
        }
    }

    fn lock(&self, owner: u64) -> Operation {
        let flags = (self.number >> 32) as u16;
        Operation {
            header: OpenBurst::header(Kind::Operation, self.since_ns, self.lock_number(), owner),
            began_ns: self.since_ns,
            object: self.object,
            second: 0,
            caller: self.caller,
            operation: Burst::taking(flags) as u16,
            flags: flags & !OperationFlags::READS,
            outcome: 0,
        }
    }
}

impl ReportedBurst {
    /// Whether a record that the thread wrote was already reported from the control block; it is identified by its header's
    /// kind, number and time.
    pub fn takes_back(&mut self, kind: u8, number: u32, time_ns: u64) -> bool {
        if kind == Kind::Burst as u8 {
            return self.burst.take_if(|told| *told == number).is_some();
        }
        self.lock.take_if(|told| *told == (number, time_ns)).is_some()
    }

    /// Corrections for a thread that has ended: numbers it had used whose records were reported but never written, and
    /// whether the reported acquisition used a further number that the thread had not counted.
    pub fn of_one_gone(&self, open: &OpenBurst) -> (u64, bool) {
        let burst = open.has_burst() && self.burst == Some(open.number as u32);
        let lock = self.lock.is_some_and(|(number, _)| number == open.lock_number());
        let has_number = open.count == 0 && !open.is_counted();
        (u64::from(burst || has_number && lock), lock && (burst || open.is_counted()))
    }
}

#[cfg(test)]
mod tests {
    use super::super::thread_ring_reader::{Ring, Turn};
    use super::*;
    use probe_abi::interpose::SharedLayout;
    use probe_abi::{Record, SyncOperation, interpose::SharedWord};

    const OWNER: u64 = 70 << 32 | 7;
    const OBJECT: u64 = 0x1000;

    fn shared() -> Shared {
        let shared = Shared::new(SharedLayout::new(2, 1024).expect("layout")).expect("memory");
        shared.word(SharedWord::RECORDING).store(1, Ordering::Relaxed);
        set(&shared, &[(RingWord::OWNER, OWNER)]);
        shared
    }

    fn set(shared: &Shared, words: &[(usize, u64)]) {
        for (word, value) in words {
            shared.word(shared.layout().control(0) + word).store(*value, Ordering::Relaxed);
        }
    }

    /// Sets up a burst of `count` pairs from 1,000 to `ended_ns`, and a further acquisition at `since_ns`.
    fn holds_burst(shared: &Shared, number: u64, count: u64, ended_ns: u64, since_ns: u64) {
        set(
            shared,
            &[
                (RingWord::BURST_OBJECT, OBJECT),
                (RingWord::BURST_CALLER, 0x5000),
                (RingWord::BURST_RELEASE, 0x5010),
                (RingWord::BURST_NUMBER, number),
                (RingWord::BURST_BEGAN, 1_000),
                (RingWord::BURST_ENDED, ended_ns),
                (RingWord::BURST_SINCE, since_ns),
                (RingWord::BURST_COUNT, count),
                (RingWord::BURST_HELD, 10 * count),
                (RingWord::BURST_HELD_LEAST, 10),
                (RingWord::BURST_APART_LEAST, 5),
                (RingWord::ATTEMPTS, number + 1),
            ],
        );
    }

    /// Writes a record of this number at the end of the ring, as a thread of the target would.
    fn writes(shared: &Shared, kind: Kind, number: u32, time_ns: u64) {
        let head = shared.word(shared.layout().control(0) + RingWord::HEAD).fetch_add(1, Ordering::Relaxed);
        let mut words = [0u64; RECORD_WORDS];
        words[0] = time_ns;
        words[1] = u64::from(Header::NO_CPU) << 32 | (kind as u64) << 48 | u64::from(number);
        // In a header the thread id comes first.
        words[2] = OWNER;
        words[3..].copy_from_slice(&match kind {
            Kind::Burst => [OBJECT, 0x5000, 100 | 20 << 32, 10 | 5 << 32, 0x10 | 2 << 32],
            _ => [time_ns, OBJECT, 0, 0x5000, SyncOperation::MutexLock as u64],
        });
        for (offset, word) in words.iter().enumerate().rev() {
            shared.word(shared.layout().place(0, head) + offset).store(*word, Ordering::Release);
        }
    }

    fn turn(ring: &mut Ring, shared: &Shared, now_ns: u64, last: bool) -> Vec<Record> {
        let mut got = Vec::new();
        let turn =
            Turn { before_ns: now_ns, last_ns: now_ns - 1_000, most: 100, last, ..Turn::looking(shared, 0) };
        ring.read(&turn, &mut || now_ns, &mut |bytes| got.push(Record::decode(bytes).expect("a record")));
        got
    }

    fn pairs(records: &[Record]) -> Vec<(u32, u16)> {
        let pairs = records.iter().map(|record| match record {
            Record::Burst(burst) => (burst.header.sequence, burst.count),
            other => (other.header().sequence, 0),
        });
        pairs.collect()
    }

    #[test]
    fn an_open_burst_that_may_continue_delays_completeness_and_makes_no_record() {
        let (shared, mut ring) = (shared(), Ring::default());
        holds_burst(&shared, 4, 3, 2_000, 0);
        assert_eq!(turn(&mut ring, &shared, 2_000 + MOST_APART_NS, false), []);
        assert_eq!(ring.burst_since_ns, Some(2_000));
        assert!(!ring.is_empty(&Turn::looking(&shared, 0)), "its thread may not lose its ring");
        holds_burst(&shared, 4, 4, 3_000, 4_000);
        assert_eq!(turn(&mut ring, &shared, 4_000 + MOST_HELD_NS, false), []);
        assert_eq!(ring.burst_since_ns, Some(4_000));
    }

    #[test]
    fn an_open_burst_that_cannot_continue_is_recorded_once() {
        let (shared, mut ring) = (shared(), Ring::default());
        holds_burst(&shared, 0, 3, 2_000, 0);
        let now_ns = 2_001 + MOST_APART_NS;
        let told = turn(&mut ring, &shared, now_ns, false);
        let [Record::Burst(burst)] = told.as_slice() else { panic!("{told:?}") };
        assert_eq!((burst.count, burst.span_ns, burst.held_ns, burst.released_at()), (3, 1_000, 30, 0x5010));
        assert_eq!((burst.header.tid, burst.header.pid, burst.header.time_ns), (7, 70, 2_000));
        assert_eq!(ring.burst_since_ns, None);
        assert_eq!(turn(&mut ring, &shared, now_ns + 1, false), [], "not twice");
        assert_eq!(ring.dropped(&shared, 0), 0, "its number is no loss");
        writes(&shared, Kind::Burst, 0, 2_000);
        writes(&shared, Kind::Burst, 1, 3_000);
        set(&shared, &[(RingWord::BURST_OBJECT, 0), (RingWord::ATTEMPTS, 2)]);
        assert_eq!(pairs(&turn(&mut ring, &shared, now_ns + 2, false)), [(1, 2)]);
    }

    #[test]
    fn a_held_mutex_is_recorded_with_the_number_of_its_acquisition() {
        let (shared, mut ring) = (shared(), Ring::default());
        holds_burst(&shared, 4, 3, 2_000, 2_500);
        let told = turn(&mut ring, &shared, 2_501 + MOST_HELD_NS, false);
        assert_eq!(pairs(&told), [(4, 3), (5, 0)]);
        writes(&shared, Kind::Burst, 4, 2_000);
        writes(&shared, Kind::Operation, 5, 2_500);
        writes(&shared, Kind::Operation, 6, 2_600);
        set(&shared, &[(RingWord::BURST_OBJECT, 0), (RingWord::ATTEMPTS, 7)]);
        assert_eq!(pairs(&turn(&mut ring, &shared, 2_601 + MOST_HELD_NS, false)), [(6, 0)]);
    }

    /// Above a burst's flags is the thread that wrote the lock last: only the library uses it, and it must be cut off.
    #[test]
    fn a_burst_held_for_reading_is_recorded_as_a_read_lock() {
        let (shared, mut ring) = (shared(), Ring::default());
        let kind = u64::from(OperationFlags::READS) | 0x7fff << 16;
        holds_burst(&shared, 4 | kind << 32, 3, 2_000, 2_500);
        set(&shared, &[(RingWord::ATTEMPTS, 5)]);
        let told = turn(&mut ring, &shared, 2_501 + MOST_HELD_NS, false);
        let [Record::Burst(burst), Record::Operation(read)] = told.as_slice() else { panic!("{told:?}") };
        assert_eq!((burst.count, burst.flags), (3, OperationFlags::READS));
        assert_eq!((read.operation, read.flags), (SyncOperation::RwLockRead as u16, 0));
    }

    #[test]
    fn a_burst_written_to_the_ring_in_the_same_turn_is_recorded_once() {
        let (shared, mut ring) = (shared(), Ring::default());
        holds_burst(&shared, 4, 2, 2_000, 0);
        writes(&shared, Kind::Burst, 4, 2_000);
        assert_eq!(pairs(&turn(&mut ring, &shared, 2_001 + MOST_APART_NS, false)), [(4, 2)]);
    }

    #[test]
    fn open_bursts_are_recorded_at_the_end_and_for_threads_that_are_gone() {
        let (shared, mut ring) = (shared(), Ring::default());
        holds_burst(&shared, 4, 3, 2_000, 2_500);
        assert_eq!(pairs(&turn(&mut ring, &shared, 2_600, true)), [(4, 3), (5, 0)]);
        // The thread was killed while it changed the words of its control block.
        set(&shared, &[(RingWord::BURST_VERSION, 7), (RingWord::HEAD, 4)]);
        holds_burst(&shared, 4, 4, 2_700, 0);
        let mut ring = Ring::default();
        set(&shared, &[(RingWord::HEAD, 0), (RingWord::ATTEMPTS, 1)]);
        set(&shared, &[(RingWord::BURST_NUMBER, 0)]);
        assert_eq!(turn(&mut ring, &shared, 5_000, false), []);
        assert_eq!(ring.burst_since_ns, Some(4_000), "since the last look that did not see it");
        assert_eq!(turn(&mut ring, &shared, 900_000, false), []);
        assert_eq!(ring.burst_since_ns, Some(4_000));
        let gone = Turn { before_ns: 900_000, last: true, ..Turn::looking(&shared, 0) };
        let mut got = Vec::new();
        ring.give_up_folding(&gone, &mut |bytes| got.push(Record::decode(bytes).expect("a record")));
        assert_eq!(pairs(&got), [(0, 4)]);
        ring.free(&shared, 0);
        assert_eq!(OpenBurst::look(&shared, 0, false), Look::Nothing);
        assert_eq!(ring.dropped(&shared, 0), 0);
    }

    /// Pairs that are only counted have no number, so none is missing. The acquisition after them gets the next
    /// number.
    #[test]
    fn counted_pairs_make_no_record_but_a_lasting_acquisition_does() {
        let (shared, mut ring) = (shared(), Ring::default());
        holds_burst(&shared, BURST_COUNTED, 3, 2_000, 0);
        set(&shared, &[(RingWord::ATTEMPTS, 0), (RingWord::COUNTED, 6)]);
        let now_ns = 2_501 + MOST_HELD_NS.max(MOST_APART_NS);
        assert_eq!(turn(&mut ring, &shared, now_ns, false), []);
        assert_eq!((ring.dropped(&shared, 0), Ring::counter(&shared, 0, RingWord::COUNTED)), (0, 6));
        set(&shared, &[(RingWord::BURST_SINCE, 2_500)]);
        assert_eq!(pairs(&turn(&mut ring, &shared, now_ns, false)), [(0, 0)]);
        assert_eq!(turn(&mut ring, &shared, now_ns + 1, false), [], "not twice");
        writes(&shared, Kind::Operation, 0, 2_500);
        writes(&shared, Kind::Operation, 1, 2_600);
        set(&shared, &[(RingWord::BURST_OBJECT, 0), (RingWord::ATTEMPTS, 2)]);
        assert_eq!(pairs(&turn(&mut ring, &shared, now_ns + 2, false)), [(1, 0)]);
        assert_eq!(ring.dropped(&shared, 0), 0);
    }

    /// The same for a thread that died while it held the mutex.
    #[test]
    fn an_acquisition_after_counted_pairs_is_recorded_for_a_thread_that_is_gone() {
        let (shared, mut ring) = (shared(), Ring::default());
        holds_burst(&shared, BURST_COUNTED, 3, 2_000, 2_500);
        set(&shared, &[(RingWord::ATTEMPTS, 5), (RingWord::HEAD, 0)]);
        assert_eq!(pairs(&turn(&mut ring, &shared, 9_000, true)), [(5, 0)]);
        let before = ring.dropped(&shared, 0);
        ring.free(&shared, 0);
        assert_eq!(ring.dropped(&shared, 0), before, "the next thread's first number is another one");
        let attempts = shared.word(shared.layout().control(0) + RingWord::ATTEMPTS);
        assert_eq!(attempts.load(Ordering::Relaxed), 6);
    }

    #[test]
    fn an_impossible_burst_is_counted_as_undecodable() {
        let (shared, mut ring) = (shared(), Ring::default());
        holds_burst(&shared, 4, 3, u64::MAX - 5, 0);
        set(&shared, &[(RingWord::BURST_HELD, u64::MAX), (RingWord::BURST_BEGAN, 7)]);
        assert_eq!(turn(&mut ring, &shared, 5_000, true), []);
        assert_eq!(ring.undecodable, 1);
    }
}
