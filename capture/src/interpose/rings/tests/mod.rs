//! Tests of rings whose writer is a simulated library.

mod cost;
mod ending;
mod memory;
mod turns;

use super::ending::{LOOK_EVERY_NS, TRIES};
use super::*;
use probe_abi::interpose::{Phase, RingWord, SharedLayout, may_take};
use probe_abi::{Header, Kind, Operation, Record, SyncOperation};
use zerocopy::IntoBytes;

const PID: u32 = 70;

/// Acts as the preloaded library does in one thread.
struct Writer<'a> {
    shared: &'a Shared,
    ring: usize,
    tid: u32,
}

impl Writer<'_> {
    fn control(&self, word: usize) -> &std::sync::atomic::AtomicU64 {
        self.shared.word(self.shared.layout().control(self.ring) + word)
    }

    fn claims(shared: &Shared, ring: usize, tid: u32) -> Writer<'_> {
        shared.word(SharedWord::NEXT_RING).store(ring as u64 + 1, Ordering::Release);
        let writer = Writer { shared, ring, tid };
        writer.control(RingWord::OWNER).store(u64::from(PID) << 32 | u64::from(tid), Ordering::Release);
        writer
    }

    /// Counts an attempt and takes a place, as the library does; `None`: there is no room.
    fn tries(&self) -> Option<(u64, u64)> {
        let layout = self.shared.layout();
        let number = self.control(RingWord::ATTEMPTS).fetch_add(1, Ordering::Relaxed);
        let head = self.control(RingWord::HEAD);
        let place = head.load(Ordering::Relaxed);
        if place >= self.control(RingWord::PAID_TO).load(Ordering::Relaxed) {
            let tail = self.control(RingWord::TAIL).load(Ordering::Relaxed);
            let end = layout.piece_end(place, tail)?;
            let (word, bit) = layout.idle(place);
            if self.control(word).fetch_and(!bit, Ordering::Relaxed) & bit == 0 {
                let free = self.shared.word(SharedWord::FREE);
                if !may_take((place - tail) / layout.piece_records(), free.load(Ordering::Relaxed) as i64) {
                    self.control(RingWord::SHORT).fetch_add(1, Ordering::Relaxed);
                    return None;
                }
                free.fetch_sub(1, Ordering::Relaxed);
            }
            self.control(RingWord::PAID_TO).store(end, Ordering::Relaxed);
        }
        Some((number, head.fetch_add(1, Ordering::Relaxed)))
    }

    fn takes_place(&self) -> (u64, u64) {
        self.tries().expect("room")
    }

    fn fills(&self, (number, place): (u64, u64), time_ns: u64) {
        let kind = Kind::Operation as u8;
        let header = Header {
            time_ns,
            sequence: number as u32,
            cpu: Header::NO_CPU,
            kind,
            context: 0,
            tid: self.tid,
            pid: PID,
        };
        let operation = Operation {
            header,
            began_ns: time_ns - 1,
            object: 0x1000,
            second: 0,
            caller: 0x2000,
            operation: SyncOperation::MutexLock as u16,
            flags: 0,
            outcome: 0,
        };
        let first = self.shared.layout().place(self.ring, place);
        let words: [u64; 8] = zerocopy::transmute!(operation);
        for (offset, word) in words.iter().enumerate().rev() {
            self.shared.word(first + offset).store(*word, Ordering::Release);
        }
    }

    fn writes(&self, time_ns: u64) {
        self.fills(self.takes_place(), time_ns);
    }

    /// Does what [`Writer::writes`] does, if the ring has room.
    fn writes_if_it_can(&self, time_ns: u64) -> bool {
        self.tries().map(|place| self.fills(place, time_ns)).is_some()
    }
}

fn rings() -> Rings {
    let shared = Shared::new(SharedLayout::new(4, 1024).expect("layout")).expect("memory");
    Rings::new(shared, Some(0.02))
}

/// The memory that `Rings` owns, mapped again for the writing side.
fn other_side(rings: &Rings) -> Shared {
    rings.shared.again().expect("mapped again")
}

/// One turn at this time with these threads alive. Returns ring and time of each record, and the time up to which the
/// turn is complete.
fn turn(rings: &mut Rings, now_ns: u64, alive: &[u32]) -> (Vec<(usize, u64)>, Option<u64>) {
    let mut got = Vec::new();
    let turned = rings.drain(
        &mut || now_ns,
        &mut |pid, tid| pid == PID && alive.contains(&tid),
        &mut |ring, bytes| {
            let record = Record::decode(bytes).expect("a record");
            assert_eq!(record.as_bytes().as_bytes().len(), 64);
            got.push((ring, record.header().time_ns));
        },
    );
    assert_eq!(turned.records, got.len());
    (got, turned.complete_to_ns)
}
